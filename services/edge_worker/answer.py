"""One answer as it grows: draws its tokens, makes text of them, knows when it ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from services.common.vocabulary import FinishReason
from services.edge_worker.constraint import Constraint
from services.edge_worker.events import DeltaEvent, TokenInfo
from services.edge_worker.sampling import (
    Row,
    RowScore,
    SamplingParams,
    Scorer,
    alternatives,
    draw,
    greedy,
    without,
)
from services.edge_worker.stop import StopMatcher


class Decoder(Protocol):
    """Turns tokens into text as they come, never cutting a character."""

    def push(self, token: int) -> str:
        """Text that this token completes, perhaps empty."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerSpec:
    """What was asked of an answer.

    Attributes:
        sampling: How tokens are drawn.
        seed: Seed of its own generator.
        max_tokens: It ends here at the latest.
        min_tokens: Before that many, neither an end token nor a stop string ends it.
        stops: It ends before any of these.
        logprobs: Tokens are reported.
        top_logprobs: Alternatives for each of them.
        end_ids: Tokens that end it.
        sample: Which of its request's samples it is.
    """

    sampling: SamplingParams
    seed: int
    max_tokens: int
    min_tokens: int = 0
    stops: Sequence[str] = ()
    logprobs: bool = False
    top_logprobs: int = 0
    end_ids: frozenset[int] = frozenset()
    sample: int = 0


class Answer:
    """Belongs to the engine thread once it was submitted.

    Log-probabilities and margins are the model's own, over the whole vocabulary, before
    temperature and before a constraint takes tokens away: a forced token may be unlikely.

    Attributes:
        newest: The token drawn last; the next decode step starts from it.
        count: Tokens drawn.
    """

    def __init__(
        self, spec: AnswerSpec, decoder: Decoder, constraint: Constraint | None = None
    ) -> None:
        self.newest = -1
        self.count = 0
        self._spec = spec
        self._decoder = decoder
        self._constraint = constraint
        self._stops = StopMatcher(spec.stops)
        self._rng = np.random.Generator(np.random.PCG64(spec.seed))
        self._sum = 0.0
        self._min = math.inf
        self._margins = 0.0

    @property
    def mean_logprob(self) -> float:
        """Mean log-probability of the tokens drawn."""
        return self._sum / max(1, self.count)

    @property
    def min_logprob(self) -> float:
        """Lowest log-probability of a token."""
        return self._min if self.count else 0.0

    @property
    def mean_margin(self) -> float:
        """Mean gap between best and second token."""
        return self._margins / max(1, self.count)

    def take(self, row: Row, scorer: Scorer) -> tuple[DeltaEvent | None, FinishReason | None]:
        """Draws the next token from a row of logits.

        Returns:
            Text and tokens to send, where there are any, and why the answer has ended,
            where it has.

        Raises:
            BadLogits: The row is not finite.
        """
        score = scorer.score(row)
        token = self._choose(row, score)
        logprob = float(row[token]) - score.logsumexp
        self.newest = token
        self.count += 1
        self._sum += logprob
        self._min = min(self._min, logprob)
        self._margins += score.margin
        text, reason = self._read(token)
        if not self._spec.logprobs:
            return (DeltaEvent(text, (), self._spec.sample) if text else None), reason
        info = TokenInfo(token, logprob, alternatives(row, score, self._spec.top_logprobs))
        return DeltaEvent(text, (info,), self._spec.sample), reason

    def _choose(self, row: Row, score: RowScore) -> int:
        if self._constraint is not None:
            allowed = self._constraint.allowed()
            token = int(allowed[self._choose_free(row[allowed], None)])
            self._constraint.take(token)
            return token
        return self._choose_free(row, score)

    def _choose_free(self, row: Row, score: RowScore | None) -> int:
        early = score is not None and self.count < self._spec.min_tokens
        banned = self._spec.end_ids if early else frozenset[int]()
        if self._spec.sampling.temperature <= 0.0:
            return int(row.argmax()) if score is None else greedy(row, score, banned)
        return draw(without(row, banned) if banned else row, self._spec.sampling, self._rng)

    def _read(self, token: int) -> tuple[str, FinishReason | None]:
        """Text that became certain, and the reason where the answer ends with this token."""
        if token in self._spec.end_ids:
            return self._rest(), FinishReason.STOP
        text = self._decoder.push(token)
        if self.count >= self._spec.min_tokens:
            text, stopped = self._stops.push(text)
            if stopped:
                return text, FinishReason.STOP
        if self._constraint is not None and self._constraint.done:
            return text + self._rest(), FinishReason.STOP
        if self.count >= self._spec.max_tokens:
            return text + self._rest(), FinishReason.LENGTH
        return text, None

    def _rest(self) -> str:
        # A character that the end cut in the middle is left out.
        return self._stops.finish()
