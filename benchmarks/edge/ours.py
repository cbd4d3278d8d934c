"""Our engine under measurement: its own scheduler, runtime, sampling, in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from services.common.vocabulary import FinishReason
from services.edge_worker.answer import Answer, AnswerSpec
from services.edge_worker.engine import Engine, Hooks
from services.edge_worker.events import DeltaEvent, Event, FailedEvent, FinishedEvent
from services.edge_worker.job import Job
from services.edge_worker.runtime.base import Runtime
from services.edge_worker.sampling import Row, SamplingParams, Scorer
from services.edge_worker.scheduler.lane import LaneLimits
from services.edge_worker.scheduler.plan import LaneName

PATIENCE_S = 600.0


class _Mute:
    """Text is not what is measured."""

    def push(self, token: int) -> str:
        return ""


class TimedAnswer(Answer):
    """A greedy answer of exactly `tokens` tokens that notes each and when it was drawn."""

    def __init__(self, tokens: int) -> None:
        super().__init__(AnswerSpec(SamplingParams(), seed=0, max_tokens=tokens), _Mute())
        self.times: list[float] = []
        self.tokens: list[int] = []

    def take(self, row: Row, scorer: Scorer) -> tuple[DeltaEvent | None, FinishReason | None]:
        """See `Answer.take`."""
        taken = super().take(row, scorer)
        self.times.append(time.monotonic())
        self.tokens.append(self.newest)
        return taken


@dataclass(slots=True)
class _End:
    """Resolves with the answer's end."""

    done: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def push(self, event: Event) -> None:
        if self.done.done():  # cancelled: nobody waits
            return
        if isinstance(event, FailedEvent):
            self.done.set_exception(event.error)
        elif isinstance(event, FinishedEvent):
            self.done.set_result(None)


@dataclass(frozen=True, slots=True)
class Timed:
    """One answer; times are monotonic seconds."""

    asked_at: float
    token_times: Sequence[float]
    tokens: Sequence[int]

    @property
    def ttft_ms(self) -> float:
        """From asking to the first token."""
        return (self.token_times[0] - self.asked_at) * 1000.0


@asynccontextmanager
async def running(runtime: Runtime, lanes: Sequence[LaneLimits]) -> AsyncIterator[Engine]:
    """A warm engine over `lanes`."""
    hooks = Hooks(on_step=lambda _report: None, on_health=lambda _healthy: None)
    engine = Engine(runtime, lanes, hooks, failure_limit=1)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


async def ask(
    engine: Engine, lane: LaneName, prompt: Sequence[int], tokens: int, tenant: str = "bench"
) -> Timed:
    """One request of `tokens` output tokens."""
    answer, end = TimedAnswer(tokens), _End()
    asked_at = time.monotonic()
    job = Job(
        lane=lane,
        tenant=tenant,
        prompt=tuple(prompt),
        max_tokens=tokens,
        expires_at=asked_at + PATIENCE_S,
        answers=(answer,),
        sink=end,
    )
    engine.submit(job)
    try:
        await end.done
    finally:
        engine.abort(job)
    return Timed(asked_at, answer.times, answer.tokens)
