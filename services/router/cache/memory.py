"""Stores in process, bounded: the least recently used goes first."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from services.router.cache.store import Neighbour, Values

Clock = Callable[[], float]


@dataclass(slots=True)
class MemoryKeyValues:
    """See `KeyValueStore`. `max_bytes` counts keys and values."""

    max_bytes: int
    clock: Clock = time.monotonic
    _kept: OrderedDict[str, tuple[bytes, float]] = field(default_factory=OrderedDict)
    _bytes: int = 0

    async def get(self, key: str) -> bytes | None:
        """See `KeyValueStore`."""
        found = self._kept.get(key)
        if found is None:
            return None
        value, until = found
        if until <= self.clock():
            self._forget(key)
            return None
        self._kept.move_to_end(key)
        return value

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """See `KeyValueStore`."""
        self._forget(key)
        self._kept[key] = (value, self.clock() + ttl_s)
        self._bytes += len(key) + len(value)
        while self._bytes > self.max_bytes and self._kept:
            self._forget(next(iter(self._kept)))

    async def drop(self, key: str) -> None:
        """See `KeyValueStore`."""
        self._forget(key)

    async def close(self) -> None:
        """See `KeyValueStore`."""

    def _forget(self, key: str) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._bytes -= len(key) + len(found[0])


@dataclass(frozen=True, slots=True)
class _Row:
    scope: str
    question: str
    vector: Values
    value: bytes
    until: float


@dataclass(slots=True)
class MemoryVectors:
    """See `VectorStore`. A scan over the scope's rows: 1 ms for 10,000."""

    max_rows: int
    clock: Clock = time.monotonic
    _rows: OrderedDict[str, _Row] = field(default_factory=OrderedDict)
    _scopes: dict[str, set[str]] = field(default_factory=dict)

    async def nearest(self, scope: str, vector: Values, count: int) -> Sequence[Neighbour]:
        """See `VectorStore`."""
        now = self.clock()
        for row in [row for row in self._scopes.get(scope, ()) if self._rows[row].until <= now]:
            self._forget(row)
        ids = list(self._scopes.get(scope, ()))
        if not ids:
            return []
        cosines = np.stack([self._rows[row].vector for row in ids]) @ vector
        best = np.argsort(-cosines)[:count]
        return [self._neighbour(ids[place], float(cosines[place])) for place in best]

    async def put(
        self, scope: str, row: str, question: str, vector: Values, value: bytes, ttl_s: float
    ) -> None:
        """See `VectorStore`."""
        self._forget(row)
        self._rows[row] = _Row(scope, question, vector, value, self.clock() + ttl_s)
        self._scopes.setdefault(scope, set()).add(row)
        while len(self._rows) > self.max_rows:
            self._forget(next(iter(self._rows)))

    async def drop(self, row: str) -> None:
        """See `VectorStore`."""
        self._forget(row)

    async def close(self) -> None:
        """See `VectorStore`."""

    def _neighbour(self, row: str, cosine: float) -> Neighbour:
        kept = self._rows[row]
        self._rows.move_to_end(row)
        return Neighbour(row, kept.question, cosine, kept.vector, kept.value)

    def _forget(self, row: str) -> None:
        kept = self._rows.pop(row, None)
        if kept is None:
            return
        members = self._scopes[kept.scope]
        members.discard(row)
        if not members:
            del self._scopes[kept.scope]
