"""What the proxy needs from a place that keeps usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from services.cloud_proxy.policy.limits import Decision, Limits, Spent, Want


@dataclass(frozen=True, slots=True)
class Reservation:
    """Which reservation: its tenant, the scopes that it was taken from, its id."""

    tenant: str
    scopes: tuple[str, ...]
    id: str


class StoreDown(Exception):
    """The store did not answer in time, or not properly."""


class LimitStore(Protocol):
    """Usage of all tenants. Each call is one atomic step over all limits of its scopes."""

    async def reserve(self, tenant: str, limits: Mapping[str, Limits], want: Want) -> Decision:
        """Takes `want` from every scope, or from none.

        A cancelled call leaves no reservation behind.

        Raises:
            StoreDown: Usage cannot be told now.
        """

    def settle(self, reservation: Reservation, spent: Spent) -> None:
        """Hands over the real figures; neither waits nor raises, so a cancelled call can too."""

    def release(self, reservation: Reservation) -> None:
        """Gives all of it back; neither waits nor raises."""

    async def flush(self) -> None:
        """Waits until all that was handed over is applied, as long as the store answers."""

    async def close(self) -> None:
        """Ends what runs in the background."""
