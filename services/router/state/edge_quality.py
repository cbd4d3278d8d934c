"""How often the edge's answers to a task were accepted lately."""

from __future__ import annotations

from collections import defaultdict, deque

from services.common.vocabulary import AttemptOutcome

_WINDOW = 50
# A rate of fewer answers would swing by chance.
_MIN_ANSWERS = 10
_JUDGED = frozenset({AttemptOutcome.ACCEPTED, AttemptOutcome.REJECTED})


class EdgeQuality:
    """Rolling pass rates by task type; task types are those of the policy, so few."""

    def __init__(self) -> None:
        self._passed: dict[str, deque[bool]] = defaultdict(lambda: deque(maxlen=_WINDOW))

    def took(self, task_type: str, outcome: AttemptOutcome) -> None:
        """Takes in how one edge attempt ended; only judged answers count."""
        if outcome in _JUDGED:
            self._passed[task_type].append(outcome is AttemptOutcome.ACCEPTED)

    def pass_rate(self, task_type: str) -> float | None:
        """Share of the last answers that were accepted; None while there are too few."""
        passed = self._passed.get(task_type, ())
        return sum(passed) / len(passed) if len(passed) >= _MIN_ANSWERS else None
