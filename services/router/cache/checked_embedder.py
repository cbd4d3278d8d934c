"""Vectors of questions for the cache: made beside the event loop, and checked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np
import structlog
from opentelemetry import metrics

from services.common.embedding.runner import TextEmbedder, Vector
from services.common.telemetry import names
from services.router.embed_text import TextVector

_log = structlog.get_logger()
_failures = metrics.get_meter("tandem.router").create_counter(
    names.EMBED_FAILURES, description="Vectors that could not be used, by what was wrong"
)
_WIDTH = 512
_LENGTH_TOLERANCE = 0.01
# Texts that have nothing in common: 0.1 with the shipped embedder.
PROBES = ("How do I reset my password?", "今天天气怎么样")
_PROBE_COSINE = 0.9


@dataclass(slots=True)
class CheckedEmbedder:
    """An embedder whose rubbish is found out: it gives None, a log line and a count instead."""

    embedder: TextEmbedder
    _last: tuple[str, Vector] | None = field(default=None)

    @property
    def model_id(self) -> str:
        """Vectors of different ids must not be compared."""
        return self.embedder.model_id

    async def vector(self, text: str, known: TextVector | None = None) -> Vector | None:
        """The vector of `text`; None where the embedder fails or what it gives cannot be one.

        Args:
            text: A question.
            known: The vector that the request has for its decision; taken where it is of
                the same text, so that nothing is embedded twice.
        """
        try:
            made = await self._made(text, known)
            wrong = self._wrong(text, made)
        except Exception as exc:  # whatever breaks in there must not fail a request
            wrong = type(exc).__name__
        if wrong:
            _log.error("embedder_unusable", wrong=wrong)
            _failures.add(1, {names.ERROR_REASON: wrong})
            return None
        return made

    async def _made(self, text: str, known: TextVector | None) -> Vector:
        if known is not None and known.text == text:
            shared = await asyncio.to_thread(known.get) if not known.made else known.get()
            if shared is not None:
                return shared
        (made,) = await asyncio.to_thread(self.embedder.embed, [text])
        return made

    def check(self) -> str:
        """What is wrong with the embedder at start; empty where nothing is."""
        try:
            one, other = self.embedder.embed(list(PROBES))
        except Exception as exc:
            return type(exc).__name__
        same = float(one.values @ other.values) > _PROBE_COSINE
        return _misshapen(one) or _misshapen(other) or ("CONSTANT" if same else "")

    def _wrong(self, text: str, made: Vector) -> str:
        wrong = _misshapen(made)
        last, self._last = self._last, (text, made)
        if wrong or last is None or made.unknown_share > 0:
            return wrong
        before, vector = last
        # Texts that differ in more than form never have the same vector to the last bit.
        changed = "".join(before.split()).lower() != "".join(text.split()).lower()
        return "CONSTANT" if changed and np.array_equal(vector.values, made.values) else ""


def _misshapen(vector: Vector) -> str:
    values = np.asarray(vector.values)
    if values.shape != (_WIDTH,):
        return "WRONG_SIZE"
    if not np.isfinite(values).all():
        return "NOT_FINITE"
    if abs(float(np.linalg.norm(values)) - 1.0) > _LENGTH_TOLERANCE:
        return "NOT_UNIT"
    return ""
