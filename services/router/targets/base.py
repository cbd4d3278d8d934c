"""What a model target is to the executor, and the events it gives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from services.common.vocabulary import Level
from services.router.ask import Ask
from tandem.common.v1 import chat_pb2


@dataclass(frozen=True, slots=True)
class Began:
    """The model has taken the request."""

    model_id: str
    standin: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text and how many tokens it holds."""

    text: str
    tokens: int = 1


@dataclass(frozen=True, slots=True)
class Done:
    """The answer is whole.

    Attributes:
        mean_logprob: Mean log-probability of its tokens, where known.
        min_logprob: That of the least likely one.
    """

    finish_reason: chat_pb2.FinishReason.ValueType
    usage: chat_pb2.Usage
    tool_calls: tuple[chat_pb2.ToolCall, ...] = ()
    mean_logprob: float | None = None
    min_logprob: float | None = None


ModelEvent = Began | Piece | Done


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt's work order.

    Attributes:
        limit_ms: Most time the call may take; also its deadline on the wire.
        max_output_tokens: Cap on the answer.
        context_tokens: Most prompt tokens of a shortened prompt (L1).
    """

    ask: Ask
    level: Level
    limit_ms: float
    max_output_tokens: int
    context_tokens: int
    simple_lane: bool


class ModelTarget(Protocol):
    """A model behind a service of ours."""

    def open(self, job: Job) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """Starts the answer; leaving the context cancels what still runs.

        Raises:
            RemoteError: The service failed or refused.
        """
