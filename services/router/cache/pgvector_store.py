"""Questions with vectors in PostgreSQL with pgvector, shared by all replicas of the router.

The table is made when first needed; what it holds can be lost without harm, so it has no
migrations: another shape gets another name.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from services.common.errors import ConfigInvalid
from services.router.cache.store import Neighbour, StoreDown, Values
from services.router.ledger.engine import open_engine, parse_url

_TABLE = "tandem_cache_vectors_1"
_SETUP = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    f"""CREATE TABLE IF NOT EXISTS {_TABLE} (
        row_id text PRIMARY KEY, scope text NOT NULL, question text NOT NULL,
        vector vector(512) NOT NULL, value bytea NOT NULL,
        expires_at timestamptz NOT NULL)""",
    f"CREATE INDEX IF NOT EXISTS {_TABLE}_scope ON {_TABLE} (scope)",
    f"CREATE INDEX IF NOT EXISTS {_TABLE}_expires ON {_TABLE} (expires_at)",
)
# Within one scope the scan is exact; the scope's index makes it short.
_NEAREST = text(
    f"SELECT row_id, question, vector::text, value, 1 - (vector <=> CAST(:vector AS vector)) "  # noqa: S608
    f"FROM {_TABLE} WHERE scope = :scope AND expires_at > now() "
    "ORDER BY vector <=> CAST(:vector AS vector) LIMIT :count"
)
_PUT = text(
    f"INSERT INTO {_TABLE} VALUES (:row, :scope, :question, CAST(:vector AS vector), :value, "  # noqa: S608
    "now() + make_interval(secs => :ttl_s)) ON CONFLICT (row_id) DO UPDATE SET "
    "scope = excluded.scope, question = excluded.question, vector = excluded.vector, "
    "value = excluded.value, expires_at = excluded.expires_at"
)
_DROP = text(f"DELETE FROM {_TABLE} WHERE row_id = :row")  # noqa: S608
_TRIM = text(
    f"DELETE FROM {_TABLE} WHERE expires_at <= now() OR row_id IN ("  # noqa: S608
    f"SELECT row_id FROM {_TABLE} ORDER BY expires_at DESC OFFSET :most)"
)
_TRIM_EVERY = 100
_RETRY_S = 2.0
_T = TypeVar("_T")


class PgVectors:
    """See `VectorStore`. Runs in threads; a server that is down costs one try in two seconds.

    Args:
        url: postgresql://USER@HOST/DATABASE.
        timeout_ms: Longest wait for a reply.
        max_rows: The rows that end last are kept.

    Raises:
        ConfigInvalid: The URL names no PostgreSQL.
    """

    def __init__(self, url: str, timeout_ms: int, max_rows: int) -> None:
        parsed = parse_url(url)
        if parsed.get_backend_name() == "sqlite":
            raise ConfigInvalid("cache.vectors_url: must be memory or a postgresql:// URL")
        self._engine: Engine = open_engine(parsed)
        self._timeout_s = timeout_ms / 1000.0
        self._max_rows = max_rows
        self._puts = 0
        self._ready = False
        self._setup = threading.Lock()
        self._down_until = 0.0

    async def nearest(self, scope: str, vector: Values, count: int) -> Sequence[Neighbour]:
        """See `VectorStore`."""

        def work(connection: Connection) -> list[Neighbour]:
            values = {"scope": scope, "vector": _written(vector), "count": count}
            return [_neighbour(row) for row in connection.execute(_NEAREST, values)]

        return await self._run(work)

    async def put(
        self, scope: str, row: str, question: str, vector: Values, value: bytes, ttl_s: float
    ) -> None:
        """See `VectorStore`."""
        self._puts += 1
        trim = self._puts % _TRIM_EVERY == 0

        def work(connection: Connection) -> None:
            values = {
                "row": row,
                "scope": scope,
                # PostgreSQL's text holds no zero.
                "question": question.replace("\0", " "),
                "vector": _written(vector),
                "value": value,
                "ttl_s": ttl_s,
            }
            connection.execute(_PUT, values)
            if trim:
                connection.execute(_TRIM, {"most": self._max_rows})

        await self._run(work)

    async def drop(self, row: str) -> None:
        """See `VectorStore`."""
        await self._run(lambda connection: connection.execute(_DROP, {"row": row}))

    async def close(self) -> None:
        """See `VectorStore`."""
        await asyncio.to_thread(self._engine.dispose)

    async def _run(self, work: Callable[[Connection], _T]) -> _T:
        if time.monotonic() < self._down_until:
            raise StoreDown("waiting for the next try")
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.to_thread(self._do, work)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            self._down_until = time.monotonic() + _RETRY_S
            raise StoreDown(type(error).__name__) from error

    def _do(self, work: Callable[[Connection], _T]) -> _T:
        with self._setup:
            if not self._ready:
                with self._engine.begin() as connection:
                    for statement in _SETUP:
                        connection.execute(text(statement))
                self._ready = True
        with self._engine.begin() as connection:
            return work(connection)


def _written(vector: Values) -> str:
    return "[" + ",".join(f"{value:.7g}" for value in vector.tolist()) + "]"


def _neighbour(row: Any) -> Neighbour:
    vector = np.fromstring(row[2].strip("[]"), sep=",", dtype=np.float32)
    return Neighbour(row[0], row[1], float(row[4]), vector, bytes(row[3]))
