"""What the engine tells a request, in the order in which it happens."""

from __future__ import annotations

from dataclasses import dataclass

from services.common.errors import TandemError
from services.common.vocabulary import FinishReason


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """One token with log-probabilities, where they were asked for."""

    id: int
    logprob: float
    alternatives: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class StartedEvent:
    """The request left the queue.

    Attributes:
        at: Monotonic seconds.
    """

    at: float


@dataclass(frozen=True, slots=True)
class DeltaEvent:
    """Text of whole characters, perhaps empty, and the tokens behind it."""

    text: str
    tokens: tuple[TokenInfo, ...]
    sample: int = 0


@dataclass(frozen=True, slots=True)
class FinishedEvent:
    """The answer is whole; with several samples one of them.

    Attributes:
        output_tokens: Tokens drawn, the end token included.
        mean_logprob: Over all of them, under the model, before temperature.
        min_logprob: The lowest.
        mean_margin: Mean gap between the best and the second token.
        started_at: Left the queue, monotonic seconds.
        first_token_at: Monotonic seconds.
        at: Monotonic seconds.
    """

    reason: FinishReason
    output_tokens: int
    mean_logprob: float
    min_logprob: float
    mean_margin: float
    started_at: float
    first_token_at: float
    at: float
    sample: int = 0


@dataclass(frozen=True, slots=True)
class FailedEvent:
    """There will be no more."""

    error: TandemError


Event = StartedEvent | DeltaEvent | FinishedEvent | FailedEvent
