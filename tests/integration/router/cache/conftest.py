"""Real servers, and each kind of store over them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from services.router.cache.memory import MemoryKeyValues, MemoryVectors
from services.router.cache.pgvector_store import PgVectors
from services.router.cache.redis_store import RedisKeyValues
from services.router.cache.store import KeyValueStore, VectorStore
from tests.tools.postgres_server import PostgresServer
from tests.tools.redis_server import RedisServer


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["memory", "redis"])
async def values(request: pytest.FixtureRequest) -> AsyncIterator[KeyValueStore]:
    made: KeyValueStore = MemoryKeyValues(1_000_000)
    if request.param == "redis":
        made = RedisKeyValues(request.getfixturevalue("redis").url, timeout_ms=5_000)
    yield made
    await made.close()


@pytest.fixture(params=["memory", "postgresql"])
async def vectors(request: pytest.FixtureRequest) -> AsyncIterator[VectorStore]:
    made: VectorStore = MemoryVectors(200)
    if request.param == "postgresql":
        made = PgVectors(request.getfixturevalue("postgres").url, timeout_ms=10_000, max_rows=200)
    yield made
    await made.close()
