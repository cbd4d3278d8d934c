"""A request inside the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from services.edge_worker.answer import Answer
from services.edge_worker.events import Event
from services.edge_worker.scheduler.plan import LaneName


class Sink(Protocol):
    """Where events of a job go; called on the event loop."""

    def push(self, event: Event) -> None:
        """Takes an event; never blocks."""
        ...


@dataclass(slots=True, eq=False)
class Job:
    """Prompt, answer and times of one request.

    The engine thread writes the times, each once; others read them after the job
    has ended.

    Attributes:
        started_at: Left the queue, monotonic seconds; None where it never did.
        first_token_at: First token drawn.
    """

    lane: LaneName
    tenant: str
    prompt: tuple[int, ...]
    max_tokens: int
    expires_at: float
    answer: Answer
    sink: Sink
    id: int = field(default=-1)
    started_at: float | None = None
    first_token_at: float | None = None
