"""When a slow target was probed last."""

from __future__ import annotations

from services.common.vocabulary import Target


class ProbeTimes:
    """A trickle: at most one probe of a target in its interval. Times in monotonic seconds."""

    def __init__(self) -> None:
        self._at: dict[Target, float] = {}

    def due(self, target: Target, every_s: float, now: float) -> bool:
        """Whether a probe may start at `now`; if so it counts as started."""
        last = self._at.get(target)
        if last is not None and now - last < every_s:
            return False
        self._at[target] = now
        return True
