"""Asks the small models about a conversation, as facts for the decision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import structlog
from numpy.typing import NDArray

from services.common.complexity.model import ComplexityModel
from services.common.embedding.runner import TextEmbedder
from services.router.embed_text import TextVector
from services.router.policy.config import ComplexityPolicy
from services.router.policy.facts import ComplexityFacts

_log = structlog.get_logger()
_Vectors = NDArray[np.float32]


class Assessor:
    """Complexity of conversations. What is missing or fails is None, never a guess."""

    def __init__(self, embedder: TextEmbedder | None, model: ComplexityModel | None) -> None:
        self._embedder = embedder
        self._model = model
        self._examples: dict[tuple[str, ...], _Vectors] = {}

    def facts(
        self, vector: TextVector, rule: ComplexityPolicy, pass_rate: float | None
    ) -> ComplexityFacts:
        """What the models in force by `rule` say."""
        near = rule.strategy == "similarity" or rule.grey_mode == "second_signal"
        probability = None if rule.strategy == "similarity" else self._probability(vector)
        return ComplexityFacts(
            probability=probability,
            simple=self._nearest(vector, rule.simple_examples) if near else None,
            complex=self._nearest(vector, rule.complex_examples) if near else None,
            edge_pass_rate=pass_rate,
        )

    def _probability(self, vector: TextVector) -> float | None:
        model, found = self._model, vector.get()
        if model is None or found is None:
            return None
        return _guarded(lambda: model.probability(vector.text, found))

    def _nearest(self, vector: TextVector, examples: tuple[str, ...]) -> float | None:
        found = vector.get()
        if found is None or not examples:
            return None
        return _guarded(lambda: float((self._embedded(examples) @ found.values).max()))

    def _embedded(self, examples: tuple[str, ...]) -> _Vectors:
        """Vectors of a policy's examples, made once; a reload with others drops the old ones."""
        if self._embedder is None:
            raise LookupError("no embedder")
        if examples not in self._examples:
            if len(self._examples) >= 2:
                self._examples.clear()
            vectors = self._embedder.embed(examples)
            self._examples[examples] = np.stack([vector.values for vector in vectors])
        return self._examples[examples]


def _guarded(ask: Callable[[], float]) -> float | None:
    try:
        return ask()
    except Exception as error:  # a broken classifier must not fail the request
        _log.error("complexity_failed", error=type(error).__name__)
        return None
