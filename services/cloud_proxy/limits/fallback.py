"""Limits go on while Redis is down: by this process alone, or by refusing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import structlog
from opentelemetry import metrics

from services.cloud_proxy.limits.memory import MemoryStore
from services.cloud_proxy.limits.redis_store import RedisStore
from services.cloud_proxy.limits.store import Reservation, StoreDown
from services.cloud_proxy.policy.limits import Decision, Granted, Limits, Spent, Want
from services.common.telemetry import names

_log = structlog.get_logger()
# While Redis is down one call in this time waits for it; all others go on at once.
PROBE_S = 1.0


class FallbackStore:
    """Redis, and a store in this process with the same limits while Redis is down.

    Each replica then counts alone, so that together they may grant up to replicas times
    the limit for as long as it lasts. What they grant is charged in Redis when it is back.

    Args:
        primary: The shared store.
        local: None: without Redis every call is refused (`StoreDown`).
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        primary: RedisStore,
        local: MemoryStore | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._primary = primary
        self._local = local
        self._clock = clock
        self._down = False
        self._probe_at = 0.0
        self._local_ids: set[str] = set()
        meter = metrics.get_meter("tandem.cloud")
        self._refuges = meter.create_counter(
            names.LIMIT_STORE_DOWN, description="Calls whose limits were decided without Redis"
        )

    async def reserve(self, tenant: str, limits: Mapping[str, Limits], want: Want) -> Decision:
        """See `LimitStore.reserve`."""
        if self._down and self._clock() < self._probe_at:
            return await self._without(tenant, limits, want)
        # Set first: while this call probes, the others need not wait with it.
        self._probe_at = self._clock() + PROBE_S
        try:
            decision = await self._primary.reserve(tenant, limits, want)
        except StoreDown as exc:
            self._probe_at = self._clock() + PROBE_S
            self._say(down=True, cause=str(exc))
            return await self._without(tenant, limits, want)
        self._say(down=False)
        return decision

    def settle(self, reservation: Reservation, spent: Spent) -> None:
        """See `LimitStore.settle`."""
        if self._local is None or reservation.id not in self._local_ids:
            self._primary.settle(reservation, spent)
            return
        self._local_ids.discard(reservation.id)
        self._local.settle(reservation, spent)
        self._primary.charge(reservation, spent)

    def release(self, reservation: Reservation) -> None:
        """See `LimitStore.release`."""
        if self._local is None or reservation.id not in self._local_ids:
            self._primary.release(reservation)
            return
        self._local_ids.discard(reservation.id)
        self._local.release(reservation)

    async def flush(self) -> None:
        """See `LimitStore.flush`."""
        await self._primary.flush()

    async def close(self) -> None:
        """See `LimitStore.close`."""
        await self._primary.close()

    async def _without(self, tenant: str, limits: Mapping[str, Limits], want: Want) -> Decision:
        self._refuges.add(1)
        if self._local is None:
            raise StoreDown("down")
        decision = await self._local.reserve(tenant, limits, want)
        if isinstance(decision, Granted):
            self._local_ids.add(want.id)
        return decision

    def _say(self, *, down: bool, cause: str = "") -> None:
        if down == self._down:
            return
        self._down = down
        if down:
            rule = "refuse" if self._local is None else "local"
            _log.error("limit_store_down", cause=cause, on_store_down=rule)
        else:
            _log.info("limit_store_back")
