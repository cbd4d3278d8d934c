"""A request inside the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from services.common.vocabulary import FinishReason
from services.edge_worker.events import DeltaEvent, Event
from services.edge_worker.sampling import Row, Scorer
from services.edge_worker.scheduler.plan import LaneName


class Sink(Protocol):
    """Where events of a job go; called on the event loop."""

    def push(self, event: Event) -> None:
        """Takes an event; never blocks."""
        ...


class Drawer(Protocol):
    """Takes logits and says which token comes next; engine thread only."""

    newest: int
    """The token drawn last; the next decode step starts from it."""
    count: int
    """Tokens drawn."""

    @property
    def mean_logprob(self) -> float: ...
    @property
    def min_logprob(self) -> float: ...
    @property
    def mean_margin(self) -> float: ...

    def take(self, row: Row, scorer: Scorer) -> tuple[DeltaEvent | None, FinishReason | None]:
        """Draws from a row: what to send, and why it has ended, where it has."""
        ...


@dataclass(slots=True, eq=False)
class Job:
    """Prompt, answers and times of one request.

    The engine thread writes the times, each once; others read them after the job
    has ended.

    Attributes:
        max_tokens: Of each answer.
        answers: One for each sample.
        ids: Of the samples inside the engine, once it was submitted.
        started_at: Left the queue, monotonic seconds; None where it never did.
        first_token_at: First token drawn.
    """

    lane: LaneName
    tenant: str
    prompt: tuple[int, ...]
    max_tokens: int
    expires_at: float
    answers: tuple[Drawer, ...]
    sink: Sink
    ids: tuple[int, ...] = ()
    started_at: float | None = None
    first_token_at: float | None = None

    @property
    def output_tokens(self) -> int:
        """Tokens drawn in all samples."""
        return sum(answer.count for answer in self.answers)


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer of a job."""

    job: Job
    index: int

    @property
    def id(self) -> int:
        """Of its sequence."""
        return self.job.ids[self.index]

    @property
    def answer(self) -> Drawer:
        """The answer itself."""
        return self.job.answers[self.index]
