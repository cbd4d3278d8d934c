"""Step share between lanes: start-time fair queueing over engine time.

P. Goyal, H. M. Vin, H. Cheng, "Start-time Fair Queueing", 1996: each lane has a
virtual time that grows by cost / weight; the lane with the smallest runs next. A
lane that was at rest starts at the current virtual time: it neither saves up
credit nor pays for the past.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from services.edge_worker.scheduler.plan import LaneName


class StepShare:
    """Picks the lane that runs next.

    Args:
        weights: Share of each lane while all have work; ties go to the first.
    """

    def __init__(self, weights: Mapping[LaneName, float]) -> None:
        self._weights = dict(weights)
        self._order = {lane: place for place, lane in enumerate(weights)}
        self._time = dict.fromkeys(weights, 0.0)
        self._busy: frozenset[LaneName] = frozenset()
        self._now = 0.0

    def pick(self, ready: Collection[LaneName]) -> LaneName | None:
        """The lane of `ready` whose turn it is, None where none is ready."""
        for lane in ready:
            if lane not in self._busy:
                self._time[lane] = max(self._time[lane], self._now)
        self._busy = frozenset(ready)
        if not ready:
            return None
        chosen = min(ready, key=lambda lane: (self._time[lane], self._order[lane]))
        self._now = self._time[chosen]
        return chosen

    def charge(self, lane: LaneName, cost_ms: float) -> None:
        """Books what a step of `lane` took."""
        self._time[lane] += cost_ms / self._weights[lane]
