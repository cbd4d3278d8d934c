"""What a decision is: an ordered list of attempts and the evidence behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from services.common.vocabulary import FallbackType, Level, Reason, Target

Verdict = Literal["pass", "nominate", "veto", "reorder"]
ANY_FAILURE = frozenset(FallbackType) - {FallbackType.NONE}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one step looked at and said. Values are figures and names, never request text."""

    step: str
    verdict: Verdict
    inputs: Mapping[str, str] = field(default_factory=dict)
    value: str = ""
    threshold: str = ""
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class PlannedAttempt:
    """One attempt.

    Attributes:
        after: Failures of the attempt before after which this one is entered.
        truncated: The answer is cut to what the budget holds, and marked.
    """

    level: Level
    target: Target
    reason: Reason
    cap_fraction: float
    after: frozenset[FallbackType] = ANY_FAILURE
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision for one request.

    Attributes:
        attempts: In order; L4 is not listed, it always stands behind the last.
        reason: Why the first attempt stands first.
        fallback_type: CAPABILITY or UNAVAILABLE where admission already left the edge.
        steps: Evidence in order.
        current_score: Complexity 1–10 of the conversation; None where it was not computed.
        score: The same with the session's window.
        shadow: Runs beside the first attempt, in the grey zone.
        shadow_best: Both run at once and the better answer is served.
    """

    attempts: tuple[PlannedAttempt, ...]
    reason: Reason
    fallback_type: FallbackType
    task_type: str
    expected_output_tokens: int
    steps: tuple[Evidence, ...]
    current_score: float | None = None
    score: float | None = None
    shadow: Target | None = None
    shadow_best: bool = False

    @property
    def first(self) -> PlannedAttempt | None:
        """The attempt tried first; None where only L4 is left."""
        return self.attempts[0] if self.attempts else None
