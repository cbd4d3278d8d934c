"""The generator over the edge worker's engine: same batching, full-precision weights."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import structlog

from cli.standin.generator import Begun, Ended, Prompt, Push, Text
from services.common.deadline import Budget
from services.edge_worker.app import lane_limits
from services.edge_worker.config import EdgeSettings
from services.edge_worker.engine import Engine, Hooks
from services.edge_worker.events import DeltaEvent, Event, FinishedEvent, StartedEvent
from services.edge_worker.model import LoadedModel, load_onnx
from services.edge_worker.pipeline import GeneratePipeline, Ticket
from services.edge_worker.record import Recorder
from services.edge_worker.request import Generation

_log = structlog.get_logger()


class EdgeGenerator:
    """Runs prompts on an engine of its own."""

    def __init__(self, model: LoadedModel, engine: Engine, pipeline: GeneratePipeline) -> None:
        self.model_id = model.runtime.info.model_id
        self._model = model
        self._engine = engine
        self._pipeline = pipeline

    @classmethod
    async def start(cls, model_dir: Path, threads: int) -> EdgeGenerator:
        """Loads and warms the model; takes seconds.

        Raises:
            ConfigInvalid: It cannot be used.
        """
        settings = _settings(model_dir, threads)
        model = await asyncio.to_thread(load_onnx, settings.runtime)
        info = model.runtime.info
        lanes = lane_limits(settings, info)
        recorder = Recorder(info)
        hooks = Hooks(on_step=recorder.step, on_health=_on_health)
        engine = Engine(model.runtime, list(lanes.values()), hooks, settings.runtime.failure_limit)
        await engine.start()
        pipeline = GeneratePipeline(
            model, engine, lanes, settings.limits, settings.stream, recorder
        )
        return cls(model, engine, pipeline)

    async def generate(self, request_id: str, prompt: Prompt, push: Push) -> None:
        """See `Generator.generate`."""

        async def send(ticket: Ticket, event: Event) -> None:
            if isinstance(event, StartedEvent):
                await push(Begun())
            elif isinstance(event, DeltaEvent):
                await push(Text(event.text, tuple(token.logprob for token in event.tokens)))
            elif isinstance(event, FinishedEvent):
                await push(Ended(event.reason, ticket.input_tokens, event.output_tokens))

        await self._pipeline.run(_generation(request_id, prompt), _budget(), send)

    async def stop(self) -> None:
        """Ends the engine and frees the weights."""
        await self._engine.stop()
        self._pipeline.close()
        self._model.runtime.close()


def _settings(model_dir: Path, threads: int) -> EdgeSettings:
    """The edge's own settings with room for longer answers."""
    return EdgeSettings.model_validate(
        {
            "runtime": {"model_dir": model_dir, "threads": threads},
            "lanes": {
                "simple": {"slots": 8, "max_batch_size": 8, "row_tokens": 2048},
                "complex": {"slots": 4, "max_batch_size": 4, "row_tokens": 4096},
            },
            "limits": {"default_output_tokens": 512},
        }
    )


def _generation(request_id: str, prompt: Prompt) -> Generation:
    return Generation(
        request_id=request_id,
        tenant="",
        lane=None,
        system=prompt.system,
        turns=prompt.turns,
        sampling=prompt.sampling,
        seed=prompt.seed,
        stops=prompt.stops,
        max_output_tokens=prompt.max_tokens,
        min_output_tokens=0,
        logprobs=prompt.logprobs,
        top_logprobs=0,
    )


def _budget() -> Budget:
    """Providers know no deadline: the caller hangs up when it has waited enough."""
    now = time.monotonic()
    return Budget(EdgeSettings().limits.max_budget_ms, 0, now, now + 3_600.0)


def _on_health(healthy: bool) -> None:
    _log.error("engine_health", healthy=healthy)
