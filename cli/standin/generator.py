"""What the HTTP face needs from whatever makes the text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from services.common.vocabulary import FinishReason
from services.edge_worker.chat_template import Turn
from services.edge_worker.sampling import SamplingParams


@dataclass(frozen=True, slots=True)
class Prompt:
    """A checked request.

    Attributes:
        max_tokens: 0: the generator's own cap.
        seed: None: drawn anew.
    """

    system: str
    turns: tuple[Turn, ...]
    sampling: SamplingParams
    seed: int | None
    stops: tuple[str, ...]
    max_tokens: int
    logprobs: bool


@dataclass(frozen=True, slots=True)
class Begun:
    """The answer begins."""


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer, and the log-probabilities of its tokens where asked for."""

    text: str
    logprobs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """The answer is whole."""

    reason: FinishReason
    input_tokens: int
    output_tokens: int


Output = Begun | Text | Ended
Push = Callable[[Output], Awaitable[None]]


class Generator(Protocol):
    """Makes answers."""

    model_id: str
    """Hash of weights and recipe."""

    async def generate(self, request_id: str, prompt: Prompt, push: Push) -> None:
        """Pushes `Begun`, texts and `Ended`; cancelling it frees the place at once.

        Raises:
            InvalidField: The prompt does not fit.
            QueueFull: Not now.
            DeadlineExceeded, SlowReader, EngineFailed: It was cut off.
        """
