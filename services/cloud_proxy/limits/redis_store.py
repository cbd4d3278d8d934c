"""Usage in Redis, shared by all replicas; its clock is Redis' own.

Keys are `tandem:limits:{<tenant>}:<scope>`: the tenant in braces is the hash tag, so that
one script may touch all scopes of a tenant in a Redis cluster too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from services.cloud_proxy.limits.store import Reservation, StoreDown
from services.cloud_proxy.policy.limits import (
    Decision,
    Granted,
    Limit,
    Limits,
    Refused,
    Remaining,
    Spent,
    Want,
)

_log = structlog.get_logger()
_FOLDER = Path(__file__).parent
_PREFIX = "tandem:limits"
_BATCH = 100
_CONNECTIONS = 32
# About a minute of settling at 150 calls/s; what is lost beyond it counts as spent.
_OUTBOX = 10_000
_RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class _Ending:
    """What `settle.lua` is to do; `mode` is settle, release or charge."""

    mode: str
    reservation: Reservation
    spent: Spent


class RedisStore:
    """See `LimitStore`.

    Endings wait in an outbox while Redis is down and are applied when it is back; a
    reservation whose outcome is unknown (no reply in time) is released the same way.

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
            decode_responses=True,
            socket_timeout=self._timeout_s,
            socket_connect_timeout=self._timeout_s,
            # A lost call is decided by the fallback, at once.
            retry=Retry(NoBackoff(), 0),
        )
        self._redis = Redis.from_pool(pool)
        self._reserve = self._redis.register_script(_source("reserve.lua"))
        self._settle = self._redis.register_script(_source("settle.lua"))
        self._outbox: deque[_Ending] = deque(maxlen=_OUTBOX)
        self._sender: asyncio.Task[None] | None = None

    async def reserve(self, tenant: str, limits: Mapping[str, Limits], want: Want) -> Decision:
        """See `LimitStore.reserve`."""
        arguments: list[Any] = [want.id, want.tokens, want.micro_usd, want.lease_ms]
        for limit in limits.values():
            arguments += [
                _number(limit.requests_per_min),
                _number(limit.tokens_per_min),
                _number(limit.concurrent),
                _number(limit.micro_usd_per_day),
            ]
        reservation = Reservation(tenant, tuple(limits), want.id)
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._reserve(keys=_keys(reservation), args=arguments)
        except (RedisError, OSError, TimeoutError) as exc:
            self.release(reservation)
            raise StoreDown(type(exc).__name__) from exc
        except asyncio.CancelledError:
            self.release(reservation)
            raise
        return _decision(reply)

    def settle(self, reservation: Reservation, spent: Spent) -> None:
        """See `LimitStore.settle`."""
        self._post(_Ending("settle", reservation, spent))

    def release(self, reservation: Reservation) -> None:
        """See `LimitStore.release`."""
        self._post(_Ending("release", reservation, Spent(0, 0)))

    def charge(self, reservation: Reservation, spent: Spent) -> None:
        """Adds a call that was granted elsewhere while Redis was down."""
        self._post(_Ending("charge", reservation, spent))

    async def flush(self) -> None:
        """See `LimitStore.flush`."""
        if self._sender is not None:
            await asyncio.wait({self._sender}, timeout=self._timeout_s * 2)

    async def close(self) -> None:
        """Sends what it can, then closes the pool; what is lost counts as spent."""
        await self.flush()
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        if self._outbox:
            _log.warning("limit_endings_lost", count=len(self._outbox))
        with contextlib.suppress(RedisError, OSError):
            await self._redis.aclose()

    def _post(self, ending: _Ending) -> None:
        if len(self._outbox) == _OUTBOX:
            _log.warning("limit_endings_lost", count=1)
        self._outbox.append(ending)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._outbox:
            batch = [self._outbox.popleft() for _ in range(min(_BATCH, len(self._outbox)))]
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._apply(batch)
            except (RedisError, OSError, TimeoutError):
                # Settling and releasing twice is harmless: the second finds nothing.
                self._outbox.extendleft(reversed(batch))
                await asyncio.sleep(_RETRY_S)

    async def _apply(self, batch: list[_Ending]) -> None:
        async with self._redis.pipeline(transaction=False) as pipe:
            for ending in batch:
                spent = ending.spent
                arguments: list[Any] = [
                    ending.mode,
                    ending.reservation.id,
                    spent.tokens,
                    spent.micro_usd,
                ]
                await self._settle(keys=_keys(ending.reservation), args=arguments, client=pipe)
            await pipe.execute()


def _source(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _keys(reservation: Reservation) -> list[str]:
    return [f"{_PREFIX}:{{{reservation.tenant}}}:{scope}" for scope in reservation.scopes]


def _number(limit: int | None) -> int:
    return -1 if limit is None else limit


def _decision(reply: Any) -> Decision:
    granted, which, retry_after_ms, *left = reply
    remaining = Remaining(*(None if value == -1 else int(value) for value in left))
    if granted:
        return Granted(remaining)
    retry = None if retry_after_ms == -1 else int(retry_after_ms)
    return Refused(Limit(which), retry, remaining)
