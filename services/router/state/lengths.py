"""How long answers usually are, by task, from what was served lately."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

from services.common.vocabulary import AttemptOutcome

_WINDOW = 200
# A quantile of fewer answers would swing by chance, so the policy's figure is kept.
_MIN_ANSWERS = 20
# The latency gate must not be late for every second answer, so the median is too short.
_QUANTILE = 0.75


class OutputLengths:
    """Rolling lengths by task type; task types are those of the policy, so few."""

    def __init__(self) -> None:
        self._tokens: dict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_WINDOW))

    def took(self, task_type: str, output_tokens: int) -> None:
        """Takes in the length of one whole answer."""
        if output_tokens > 0:
            self._tokens[task_type].append(output_tokens)

    def usual(self, task_type: str) -> int | None:
        """Tokens that three of four answers do not exceed; None while there are too few."""
        tokens = self._tokens.get(task_type, ())
        if len(tokens) < _MIN_ANSWERS:
            return None
        return sorted(tokens)[int(_QUANTILE * (len(tokens) - 1))]

    def seed(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Takes in ledger rows, oldest first, so that a new process need not learn anew."""
        for row in rows:
            for attempt in row["attempts"]:
                if attempt["outcome"] == AttemptOutcome.ACCEPTED:
                    self.took(row["task_type"], attempt["output_tokens"])
