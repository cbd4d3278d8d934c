"""Usage in this process. No lock: nothing here awaits, so the event loop makes it atomic."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from services.cloud_proxy.limits.store import Reservation
from services.cloud_proxy.policy import limits as policy
from services.cloud_proxy.policy.limits import Decision, Limits, Spent, State, Want


def unix_ms() -> int:
    """Unix time: daily budgets follow the calendar."""
    return int(time.time() * 1000)


class MemoryStore:
    """See `LimitStore`; for one replica, and while Redis is down."""

    def __init__(self, clock_ms: Callable[[], int] = unix_ms) -> None:
        self._clock_ms = clock_ms
        self._tenants: dict[str, State] = {}

    async def reserve(self, tenant: str, limits: Mapping[str, Limits], want: Want) -> Decision:
        """See `LimitStore.reserve`."""
        state = self._tenants.get(tenant, {})
        self._tenants[tenant], decision = policy.reserve(state, limits, want, self._clock_ms())
        return decision

    def settle(self, reservation: Reservation, spent: Spent) -> None:
        """See `LimitStore.settle`."""
        state = self._tenants.get(reservation.tenant, {})
        self._tenants[reservation.tenant] = policy.settle(
            state, reservation.scopes, reservation.id, spent, self._clock_ms()
        )

    def release(self, reservation: Reservation) -> None:
        """See `LimitStore.release`."""
        state = self._tenants.get(reservation.tenant, {})
        self._tenants[reservation.tenant] = policy.release(
            state, reservation.scopes, reservation.id, self._clock_ms()
        )

    async def flush(self) -> None:
        """See `LimitStore.flush`: nothing is ever pending."""

    async def close(self) -> None:
        """See `LimitStore.close`: nothing runs."""
