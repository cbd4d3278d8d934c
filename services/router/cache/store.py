"""What the cache needs of its stores. In process by default; Redis and PostgreSQL by URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]


class StoreDown(Exception):
    """The store did not answer in time; to its caller that is a miss."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored question like the one asked; `cosine` −1 to 1."""

    row: str
    question: str
    cosine: float
    vector: Values
    value: bytes


class KeyValueStore(Protocol):
    """Values by key, each with its time. All methods raise StoreDown."""

    async def get(self, key: str) -> bytes | None:
        """The value; None where there is none, or its time is over."""

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Stores or replaces a value for `ttl_s` seconds."""

    async def drop(self, key: str) -> None:
        """Forgets a key; nothing happens where there is none."""

    async def close(self) -> None:
        """Ends connections."""


class VectorStore(Protocol):
    """Questions with vectors of unit length, apart by scope. All methods raise StoreDown."""

    async def nearest(self, scope: str, vector: Values, count: int) -> Sequence[Neighbour]:
        """The most alike of the scope whose time is not over, best first."""

    async def put(
        self, scope: str, row: str, question: str, vector: Values, value: bytes, ttl_s: float
    ) -> None:
        """Stores or replaces a row for `ttl_s` seconds."""

    async def drop(self, row: str) -> None:
        """Forgets a row; nothing happens where there is none."""

    async def close(self) -> None:
        """Ends connections."""
