"""Settings of the edge worker; `config/edge.yaml` is the commented default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.common.settings import ServerSettings, Settings, TelemetrySettings

Count = Annotated[int, Field(ge=1)]
Milliseconds = Annotated[float, Field(ge=0)]


class RuntimeSettings(Settings):
    """Which model runs, and how."""

    kind: Literal["onnx"] = "onnx"
    model_dir: Path = Path("models/smollm2-135m-instruct/q8")
    """Folder with `manifest.json`, as `tandem models build` makes it."""
    providers: tuple[str, ...] = ("CPUExecutionProvider",)
    """Execution providers in order of preference; an absent one is an error at start."""
    threads: Annotated[int, Field(ge=0)] = 0
    """Threads of one call; 0: the CPU quota of this process."""
    arena: bool = True
    engine_cache: Path | None = None
    """Folder of built TensorRT engines."""
    check_hashes: bool = True
    failure_limit: Count = 3
    """Failed steps in a row after which the worker is not ready."""


class LaneSettings(Settings):
    """One lane: its batch, its queue, its KV cache and its share of engine time."""

    slots: Count = 16
    row_tokens: Count = 1024
    """Positions of one row: longest prompt and answer together."""
    max_cache_bytes: Count = 768 * 1024 * 1024
    """KV cache that running requests may reserve together; the others wait."""
    max_batch_size: Count = 16
    max_wait_ms: Milliseconds = 5.0
    """A new batch waits this long after its first row for others."""
    max_queue: Annotated[int, Field(ge=0)] = 64
    prefill_chunk_tokens: Count = 128
    """Most prompt tokens read between two decode steps."""
    prefill_chunk_ms: Milliseconds = 0.0
    """Time that a chunk should take, so that the other lane waits no longer; 0: no aim."""
    share: Annotated[float, Field(gt=0)] = 0.75
    """Weight while both lanes have work."""

    @model_validator(mode="after")
    def _batch_fits(self) -> Self:
        if self.max_batch_size > self.slots:
            raise ValueError("max_batch_size: must be at most slots")
        return self


class LanesSettings(Settings):
    """Both lanes. Requests that name none go by their length."""

    simple: LaneSettings = LaneSettings()
    complex: LaneSettings = LaneSettings(
        slots=8,
        max_batch_size=8,
        row_tokens=4096,
        max_cache_bytes=1024 * 1024 * 1024,
        max_queue=32,
        prefill_chunk_tokens=64,
        prefill_chunk_ms=10.0,
        share=0.25,
    )


class LimitSettings(Settings):
    """What one request may ask for."""

    max_messages: Count = 256
    max_text_chars: Count = 64_000
    """Of all texts of a request together."""
    max_output_tokens: Count = 2_048
    default_output_tokens: Count = 256
    """Cap of a request that names none."""
    max_tenant_chars: Count = 64
    max_samples: Count = 5
    """Answers of one request, which share its prefill."""
    max_stop_strings: Count = 8
    max_stop_chars: Count = 128
    max_labels: Count = 256
    max_label_chars: Count = 128
    max_classify_rows: Count = 8
    """Rows of the batch that one `Classify` may hold at a time."""
    default_budget_ms: Count = 8_000
    max_budget_ms: Count = 120_000
    off_loop_chars: Annotated[int, Field(ge=0)] = 2_000
    """Prompts above this are tokenized off the event loop."""


class SamplingSettings(Settings):
    """What absent sampling fields mean."""

    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=0)] = 0


class EmbedSettings(Settings):
    """Vectors of texts."""

    model_dir: Path | None = None
    """Folder made by `python -m services.common.embedding.kit`; without it no `Embed`."""
    max_batch_size: Count = 32
    """Texts of one call of the model."""
    max_wait_ms: Milliseconds = 2.0
    """A batch waits this long after its first text for others."""
    max_queue: Count = 256
    """Texts that may wait."""
    max_texts: Count = 64
    """Texts of one request."""
    max_chars: Count = 8_000
    """Of one text."""


class StreamSettings(Settings):
    """How far a caller may lag behind before its request is aborted."""

    max_pending_events: Count = 256
    max_pending_bytes: Count = 64 * 1024


class EdgeSettings(Settings):
    """All settings of the process; environment prefix `TANDEM_EDGE`."""

    server: ServerSettings = ServerSettings(listen="127.0.0.1:50052")
    telemetry: TelemetrySettings = TelemetrySettings()
    runtime: RuntimeSettings = RuntimeSettings()
    lanes: LanesSettings = LanesSettings()
    limits: LimitSettings = LimitSettings()
    sampling: SamplingSettings = SamplingSettings()
    embed: EmbedSettings = EmbedSettings()
    stream: StreamSettings = StreamSettings()
