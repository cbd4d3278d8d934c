"""Usage in this process. No lock: nothing here awaits, so the event loop makes it atomic."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from services.cloud_proxy.limits.store import Reservation
from services.cloud_proxy.policy import limits as policy
from services.cloud_proxy.policy.limits import Decision, Limits, Spent, State, Usage, Want

# How often usage that no longer counts is thrown away.
_SWEEP_MS = 60_000


def unix_ms() -> int:
    """Unix time: daily budgets follow the calendar."""
    return int(time.time() * 1000)


class MemoryStore:
    """See `LimitStore`; for one replica, and while Redis is down."""

    def __init__(self, clock_ms: Callable[[], int] = unix_ms) -> None:
        self._clock_ms = clock_ms
        self._usages: dict[tuple[str, str], Usage] = {}
        self._swept_at = clock_ms()

    async def reserve(self, tenant: str, limits: Mapping[str, Limits], want: Want) -> Decision:
        """See `LimitStore.reserve`."""
        now = self._clock_ms()
        self._sweep(now)
        state, decision = policy.reserve(self._state(tenant, limits), limits, want, now)
        self._keep(tenant, state)
        return decision

    def settle(self, reservation: Reservation, spent: Spent) -> None:
        """See `LimitStore.settle`."""
        tenant, scopes, id_ = reservation.tenant, reservation.scopes, reservation.id
        state = self._state(tenant, scopes)
        self._keep(tenant, policy.settle(state, scopes, id_, spent, self._clock_ms()))

    def release(self, reservation: Reservation) -> None:
        """See `LimitStore.release`."""
        tenant, scopes, id_ = reservation.tenant, reservation.scopes, reservation.id
        state = self._state(tenant, scopes)
        self._keep(tenant, policy.release(state, scopes, id_, self._clock_ms()))

    async def flush(self) -> None:
        """See `LimitStore.flush`: nothing is ever pending."""

    async def close(self) -> None:
        """See `LimitStore.close`: nothing runs."""

    def _state(self, tenant: str, scopes: Iterable[str]) -> State:
        known = self._usages
        return {scope: known[tenant, scope] for scope in scopes if (tenant, scope) in known}

    def _keep(self, tenant: str, state: State) -> None:
        for scope, usage in state.items():
            self._usages[tenant, scope] = usage

    def _sweep(self, now_ms: int) -> None:
        """Callers come and go; each would else stay here for ever."""
        if abs(now_ms - self._swept_at) < _SWEEP_MS:
            return
        self._swept_at = now_ms
        pruned = {name: policy.prune(usage, now_ms) for name, usage in self._usages.items()}
        self._usages = {name: usage for name, usage in pruned.items() if usage != Usage()}
