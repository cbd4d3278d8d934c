"""What each tenant's cloud answers have cost today, as far as this process knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

_DAY_S = 86_400.0
_MICRO = 1_000_000.0


@dataclass(slots=True)
class Spend:
    """Money by tenant and UTC day, in process. The proxy's budgets hold across processes and
    refuse; this one lowers the tier before they do.

    Attributes:
        wall: Seconds since the epoch.
    """

    wall: Callable[[], float]
    _day: int = -1
    _micro_usd: dict[str, int] = field(default_factory=dict)

    def note(self, tenant: str, cost_micro_usd: int) -> None:
        """Takes in what a request has cost."""
        self._turn()
        if cost_micro_usd:
            self._micro_usd[tenant] = self._micro_usd.get(tenant, 0) + cost_micro_usd

    def share(self, tenant: str, ceiling_usd: float | None) -> float:
        """Share of the day's ceiling that is spent; 0 without a ceiling."""
        self._turn()
        if ceiling_usd is None:
            return 0.0
        return self._micro_usd.get(tenant, 0) / _MICRO / ceiling_usd

    def _turn(self) -> None:
        day = int(self.wall() // _DAY_S)
        if day != self._day:
            self._day, self._micro_usd = day, {}
