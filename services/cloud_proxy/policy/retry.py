"""Whether and when a failed call of a provider is tried again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# Below this a further try could not bring a first token.
LEAST_USEFUL_MS = 50.0


class RetryMode(StrEnum):
    """Which failures are tried again."""

    BACKOFF = "backoff"
    ONCE_ON_TIMEOUT = "once_on_timeout"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RetryRule:
    """A tier's rule; `steps_ms` are the upper ends of the full-jitter waits."""

    mode: RetryMode
    steps_ms: tuple[int, ...] = (200, 500, 1_000)


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known of the try that failed.

    Attributes:
        number: 1 for the first try.
        retryable: Whether its kind can pass.
        timed_out: Whether it was silence that ended it.
        answering: Whether a token had come; then nothing is ever tried again.
        retry_after_ms: What the provider asked for.
    """

    number: int
    retryable: bool
    timed_out: bool
    answering: bool
    retry_after_ms: int | None = None


def next_wait_ms(
    rule: RetryRule, failure: Failure, *, remaining_ms: float, draw: float
) -> float | None:
    """How long to wait before the next try; None gives up at once.

    Full jitter: uniform between 0 and the step (Brooker, "Exponential Backoff And
    Jitter", AWS 2015), but never sooner than the provider asked for.

    Args:
        rule: The tier's rule.
        failure: The try that failed.
        remaining_ms: Budget left.
        draw: Uniform in [0, 1).
    """
    if failure.answering or not failure.retryable:
        return None
    if rule.mode is RetryMode.NONE:
        return None
    if rule.mode is RetryMode.ONCE_ON_TIMEOUT:
        wait = 0.0 if failure.timed_out and failure.number == 1 else None
    elif failure.number <= len(rule.steps_ms):
        wait = max(draw * rule.steps_ms[failure.number - 1], float(failure.retry_after_ms or 0))
    else:
        wait = None
    if wait is None or wait + LEAST_USEFUL_MS > remaining_ms:
        return None
    return wait
