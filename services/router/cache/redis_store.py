"""Values in Redis, shared by all replicas of the router."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import TypeVar

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from services.router.cache.store import StoreDown

_PREFIX = "tandem:cache:"
_CONNECTIONS = 32
_T = TypeVar("_T")


class RedisKeyValues:
    """See `KeyValueStore`. Redis bounds its size: `maxmemory` with `allkeys-lru`.

    Args:
        url: redis://, rediss:// or unix://.
        timeout_ms: Longest wait for a reply, connecting included.
    """

    def __init__(self, url: str, timeout_ms: int) -> None:
        self._timeout_s = timeout_ms / 1000.0
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=self._timeout_s,
            socket_timeout=self._timeout_s,
            socket_connect_timeout=self._timeout_s,
            # A lost call is a miss, at once.
            retry=Retry(NoBackoff(), 0),
        )
        self._redis = Redis.from_pool(pool)

    async def get(self, key: str) -> bytes | None:
        """See `KeyValueStore`."""
        found = await self._in_time(self._redis.get(_PREFIX + key))
        return found.encode() if isinstance(found, str) else found

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """See `KeyValueStore`."""
        await self._in_time(self._redis.set(_PREFIX + key, value, px=max(1, int(ttl_s * 1000))))

    async def drop(self, key: str) -> None:
        """See `KeyValueStore`."""
        await self._in_time(self._redis.delete(_PREFIX + key))

    async def close(self) -> None:
        """See `KeyValueStore`."""
        with contextlib.suppress(RedisError, OSError):
            await self._redis.aclose()

    async def _in_time(self, call: Awaitable[_T]) -> _T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await call
        except (RedisError, OSError, TimeoutError) as error:
            raise StoreDown(type(error).__name__) from error
