"""What a request that comes now can expect, from what the last minutes saw."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass

WINDOW_S = 120.0
WINDOW_COUNT = 64
# A request as it is expected before the first one came.
TYPICAL_PROMPT_TOKENS = 64
TYPICAL_OUTPUT_TOKENS = 64


class RecentMedian:
    """Median of the last `WINDOW_COUNT` values not older than `WINDOW_S`.

    When all are too old the last median stays: a lane at rest is as fast as it was.
    """

    def __init__(self, prior: float = 0.0) -> None:
        self._values: deque[tuple[float, float]] = deque(maxlen=WINDOW_COUNT)
        self._last = prior

    def add(self, value: float, now: float) -> None:
        """Adds a value seen at `now`, monotonic seconds."""
        self._values.append((now, value))

    def value(self, now: float) -> float:
        """The median; the prior where nothing was ever seen."""
        while self._values and self._values[0][0] < now - WINDOW_S:
            self._values.popleft()
        if self._values:
            self._last = statistics.median(value for _, value in self._values)
        return self._last


@dataclass(frozen=True, slots=True)
class Backlog:
    """What stands before a new request of a lane.

    Attributes:
        waiting: Sequences in the queue.
        active: Sequences that hold a place.
        places: Sequences that can hold one at the same time.
        prompt_tokens: Prompt tokens still to be computed for all of them.
    """

    waiting: int
    active: int
    places: int
    prompt_tokens: int


class LaneRates:
    """Speeds of one lane as its callers see them.

    All are wall times, so that turns of the other lane and steps between chunks
    are part of them.
    """

    def __init__(self) -> None:
        self._prefill_ms = RecentMedian()
        self._prefill_ms_per_token = RecentMedian()
        self._interval_ms = RecentMedian()
        self._output_tokens = RecentMedian()

    def prime(self, prefill_ms_per_token: float, decode_ms: float, now: float) -> None:
        """First values, before any request."""
        self._prefill_ms.add(prefill_ms_per_token * TYPICAL_PROMPT_TOKENS, now)
        self._prefill_ms_per_token.add(prefill_ms_per_token, now)
        self._interval_ms.add(decode_ms, now)
        self._output_tokens.add(TYPICAL_OUTPUT_TOKENS, now)

    def first_token(self, prefill_ms: float, prompt_tokens: int, now: float) -> None:
        """A prompt was read: time from its place to its first token."""
        self._prefill_ms.add(prefill_ms, now)
        self._prefill_ms_per_token.add(prefill_ms / prompt_tokens, now)

    def interval(self, ms: float, now: float) -> None:
        """Time between two decode steps of the lane."""
        self._interval_ms.add(ms, now)

    def finished(self, output_tokens: int, now: float) -> None:
        """An answer is whole."""
        self._output_tokens.add(output_tokens, now)

    def tpot_ms(self, now: float) -> float:
        """Time per output token; 0 before the first."""
        return self._interval_ms.value(now)

    def queue_ms(self, backlog: Backlog, now: float) -> float:
        """Wait for a place.

        The larger of: reading all prompts before it; and answers that must end
        before a place is free, which end at the rate places / (length × TPOT).
        """
        reading = backlog.prompt_tokens * self._prefill_ms_per_token.value(now)
        before = backlog.waiting + backlog.active + 1 - backlog.places
        answer_ms = self._output_tokens.value(now) * self.tpot_ms(now)
        return max(reading, max(0, before) / backlog.places * answer_ms)

    def ttft_ms(self, backlog: Backlog, now: float, prompt_tokens: int | None = None) -> float:
        """Time to first token, for a prompt of this length or a typical one."""
        if prompt_tokens is None:
            own = self._prefill_ms.value(now)
        else:
            own = prompt_tokens * self._prefill_ms_per_token.value(now)
        return self.queue_ms(backlog, now) + own
