"""The closed vocabulary as Python enums.

Names equal the protobuf enum values less their prefix; `tests/unit/common` holds
that both lists stay the same. Values are what labels, logs and trailers show.
"""

from __future__ import annotations

from enum import StrEnum, auto


class _Named(StrEnum):
    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[str]) -> str:
        return name


class Target(_Named):
    """Where an answer comes from."""

    EDGE = auto()
    CLOUD_SMALL = auto()
    CLOUD_LARGE = auto()
    CACHE = auto()
    FALLBACK = auto()


class Level(_Named):
    """How far down the chain of degradation."""

    NONE = auto()
    L0 = auto()
    L1 = auto()
    L2 = auto()
    L3 = auto()
    L4 = auto()


class FallbackType(_Named):
    """Why the first target was left."""

    NONE = auto()
    QUALITY = auto()
    TIMEOUT = auto()
    CAPABILITY = auto()
    UNAVAILABLE = auto()


class Reason(_Named):
    """The rule that spoke."""

    PII_PIN = auto()
    CAPABILITY_MISS = auto()
    HARD_RULE = auto()
    TRIVIAL_RULE = auto()
    KEYWORD_RULE = auto()
    SIMILARITY = auto()
    COMPLEXITY_LOW = auto()
    COMPLEXITY_HIGH = auto()
    GREY_SHADOW = auto()
    GREY_CASCADE = auto()
    LATENCY_PRESSURE = auto()
    LOW_CONFIDENCE = auto()
    VALIDATION_FAILED = auto()
    SECOND_SIGNAL = auto()
    SESSION_STICKY = auto()
    ESCALATION_MEMORY = auto()
    CACHE_EXACT = auto()
    CACHE_SEMANTIC = auto()
    TIER_LIMIT = auto()
    COST_CEILING = auto()
    BREAKER_OPEN = auto()
    EDGE_UNAVAILABLE = auto()
    UPSTREAM_FAILED = auto()
    BUDGET_EXHAUSTED = auto()
    LOAD_SHED = auto()
    ROUTER_DEGRADED = auto()
    DEFAULT = auto()


class AttemptOutcome(_Named):
    """How one attempt ended."""

    ACCEPTED = auto()
    REJECTED = auto()
    TIMED_OUT = auto()
    FAILED = auto()
    SKIPPED = auto()
    CANCELLED = auto()
    PARTIAL = auto()


class FinishReason(_Named):
    """Why an answer ended."""

    STOP = auto()
    LENGTH = auto()
    TOOL_CALLS = auto()
    CONTENT_FILTER = auto()
    INTERRUPTED = auto()


class StreamMode(StrEnum):
    """When text is shown, from the strictest to the loosest."""

    HOLD = "hold"
    COMMIT = "commit"
    PROVISIONAL = "provisional"

    def stricter(self, other: StreamMode) -> StreamMode:
        """The one of the two that shows text later."""
        order = list(StreamMode)
        return min(self, other, key=order.index)
