"""What the proxy needs from a provider's client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from services.cloud_proxy.policy.cost import Tokens
from services.cloud_proxy.redaction.cleared import ClearedRequest
from services.cloud_proxy.request import ToolCall
from services.common.vocabulary import FinishReason


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the answer. `text` may be empty where a tool call has begun."""

    model_id: str
    text: str


Sink = Callable[[Piece], Awaitable[None]]
"""Takes pieces as they come; the first call says that the answer has begun."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer.

    Attributes:
        model_id: As the provider names it.
        finish: Why it ended.
        tokens: None where the provider told none.
        mean_logprob: Over the tokens, where told.
    """

    model_id: str
    finish: FinishReason
    tool_calls: tuple[ToolCall[str], ...]
    tokens: Tokens | None
    mean_logprob: float | None


class Provider(Protocol):
    """One model of one provider."""

    name: str

    async def generate(
        self, request: ClearedRequest, sink: Sink, *, expires_at: float
    ) -> Completion:
        """Makes one try, and pushes pieces into `sink`.

        Pushed and not yielded, so that a cancelled call unwinds in these frames and
        the connection closes at once.

        Args:
            request: What may leave.
            sink: Where pieces go; time spent in it is not the provider's.
            expires_at: Monotonic seconds at which the budget ends.

        Raises:
            UpstreamError: One class for each thing that a provider can do wrong.
            DeadlineExceeded: The budget ended first.
        """

    async def warm(self) -> None:
        """Opens a connection ahead of the first call; never raises."""

    async def close(self) -> None:
        """Closes the pool."""
