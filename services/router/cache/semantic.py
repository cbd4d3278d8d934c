"""The semantic cache: stored questions near enough, that no guard and no verifier refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from services.common.embedding.runner import Vector
from services.common.errors import ConfigInvalid
from services.common.similarity.features import WordVectors
from services.common.similarity.guards import forbidding, sharply_forbidding
from services.common.similarity.verifier import Verifier, load_verifier, stack_vectors
from services.router.cache.checked_embedder import CheckedEmbedder
from services.router.cache.store import Neighbour, Values, VectorStore
from services.router.policy.cache import TaskCache

_log = structlog.get_logger()
_NEIGHBOURS = 5
# A verifier may accept what lies far apart; the search must find it.
_VERIFIER_FLOOR = 0.7


@dataclass(frozen=True, slots=True)
class Found:
    """Like questions: those that may serve, and those good enough for a last resort only."""

    close: tuple[Neighbour, ...] = ()
    loose: tuple[Neighbour, ...] = ()


@dataclass(slots=True)
class SemanticCache:
    """Compares questions; knows nothing of requests."""

    vectors: VectorStore
    embedder: CheckedEmbedder
    _words: WordVectors = field(init=False)
    _verifiers: dict[Path, Verifier | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        embed = self.embedder.embedder.embed
        self._words = WordVectors(lambda words: stack_vectors(embed(words)))

    def scope(self, scope: str) -> str:
        """A scope of this embedder: vectors of another are never found."""
        return f"{self.embedder.model_id}:{scope}"

    async def find(self, scope: str, question: str, vector: Vector, rules: TaskCache) -> Found:
        """Like questions of the scope, best first. Raises StoreDown."""
        if vector.unknown_share > 0:
            return Found()
        near = await self.vectors.nearest(self.scope(scope), vector.values, _NEIGHBOURS)
        if not near:
            return Found()
        return await asyncio.to_thread(self._judge, question, vector.values, near, rules)

    async def put(
        self, scope: str, row: str, question: str, vector: Vector, value: bytes, ttl_s: float
    ) -> None:
        """Stores a question, unless the embedder does not know all of it. Raises StoreDown."""
        if vector.unknown_share == 0:
            scope = self.scope(scope)
            await self.vectors.put(scope, row, question, vector.values, value, ttl_s)

    def _judge(
        self, question: str, vector: Values, near: Sequence[Neighbour], rules: TaskCache
    ) -> Found:
        verifier, limits = self._verifier(rules), rules.similarity
        if verifier is not None:
            good = (one for one in near if self._verified(verifier, question, vector, one))
            return Found(tuple(good))
        alike = [
            one
            for one in near
            if one.cosine >= limits.loose_threshold
            and not forbidding(question, one.question, limits.guards)
        ]
        close = tuple(one for one in alike if one.cosine >= limits.threshold)
        return Found(close, tuple(one for one in alike if one.cosine < limits.threshold))

    def _verified(self, verifier: Verifier, question: str, vector: Values, one: Neighbour) -> bool:
        if one.cosine < _VERIFIER_FLOOR or sharply_forbidding(question, one.question):
            return False
        return verifier.accepts(question, one.question, (vector, one.vector), self._words)

    def _verifier(self, rules: TaskCache) -> Verifier | None:
        """The task's verifier; one that cannot be used is said once, and guards judge."""
        folder = rules.verifier_dir
        if folder is None:
            return None
        if folder not in self._verifiers:
            try:
                self._verifiers[folder] = load_verifier(folder, self.embedder.model_id)
            except ConfigInvalid as error:
                _log.error("cache_verifier_refused", error=error.message)
                self._verifiers[folder] = None
        return self._verifiers[folder]
