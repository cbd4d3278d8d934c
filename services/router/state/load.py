"""Calls under way: what a tenant may have, and when low-priority channels are put off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from services.common.errors import RateLimited
from services.router.config import LoadSettings
from services.router.tenants import Tenant

# How soon a place may be free again; answers take seconds.
_RETRY_MS = 500


@dataclass(slots=True)
class _Bucket:
    """A token bucket that holds one second's calls."""

    tokens: float
    at: float


@dataclass(slots=True)
class Load:
    """One for the process, used on the event loop alone."""

    settings: LoadSettings
    clock: Callable[[], float]
    _total: int = 0
    _by_tenant: Counter[str] = field(default_factory=Counter)
    _buckets: dict[str, _Bucket] = field(default_factory=dict)

    @contextmanager
    def counted(self, tenant: Tenant) -> Iterator[None]:
        """Counts a call from its entrance to its record.

        Raises:
            RateLimited: The tenant has as many under way, or sent as many this second, as it
                may; nothing is counted then.
        """
        self._admit(tenant)
        self._total += 1
        self._by_tenant[tenant.name] += 1
        try:
            yield
        finally:
            self._total -= 1
            self._by_tenant[tenant.name] -= 1

    def sheds(self, channel: str) -> bool:
        """Whether a call of this channel gets no model now, so that others do."""
        busy = self._total > self.settings.shed_from
        return busy and channel in self.settings.low_priority_channels

    def _admit(self, tenant: Tenant) -> None:
        most = tenant.max_concurrent_calls
        if most is not None and self._by_tenant[tenant.name] >= most:
            raise RateLimited(
                f"{most} calls of this tenant are under way", retry_after_ms=_RETRY_MS
            )
        if tenant.max_calls_per_s is not None:
            self._take(tenant.name, tenant.max_calls_per_s)

    def _take(self, name: str, per_s: float) -> None:
        now, most = self.clock(), max(1.0, per_s)
        bucket = self._buckets.setdefault(name, _Bucket(most, now))
        bucket.tokens = min(most, bucket.tokens + (now - bucket.at) * per_s)
        bucket.at = now
        if bucket.tokens < 1.0:
            wait_ms = int((1.0 - bucket.tokens) / per_s * 1000.0) + 1
            raise RateLimited(
                f"this tenant may make {per_s:g} calls a second", retry_after_ms=wait_ms
            )
        bucket.tokens -= 1.0
