"""A real Redis, and both kinds of store over it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis

from services.cloud_proxy.limits.memory import MemoryStore
from services.cloud_proxy.limits.redis_store import RedisStore
from services.cloud_proxy.limits.store import LimitStore
from tests.tools.redis_server import RedisServer


@pytest.fixture(scope="session")
def redis_process() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
async def redis(redis_process: RedisServer) -> RedisServer:
    async with Redis.from_url(redis_process.url) as client:
        await client.flushall()
    return redis_process


@pytest.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest, redis: RedisServer) -> AsyncIterator[LimitStore]:
    made: LimitStore = (
        MemoryStore() if request.param == "memory" else RedisStore(redis.url, timeout_ms=2_000)
    )
    yield made
    await made.close()
