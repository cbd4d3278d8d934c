"""The engine: a thread that runs schedule → run → update, beside the event loop.

The loop hands in requests and aborts under one short lock (the scheduler's); the
thread hands back the events of a step in one call. Neither waits for a step.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from services.common.errors import DeadlineExceeded, Draining, TandemError
from services.edge_worker.events import Event, FailedEvent
from services.edge_worker.job import Job, Sample
from services.edge_worker.runtime.base import Runtime
from services.edge_worker.scheduler.lane import LaneLimits
from services.edge_worker.scheduler.plan import DecodeWork, Ended, LaneName, PrefillWork, Step
from services.edge_worker.scheduler.scheduler import LaneView, Scheduler
from services.edge_worker.scheduler.sequence import SequenceSpec, State
from services.edge_worker.stepper import Outcome, Stepper, engine_failed

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StepReport:
    """One call of the runtime, for metrics."""

    lane: LaneName
    decode_rows: int
    prefill_tokens: int
    cost_ms: float


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the engine calls on the event loop.

    Attributes:
        on_step: After each call of the runtime.
        on_health: False after `failure_limit` failed calls in a row or when the engine
            is dead, True after the next good one.
    """

    on_step: Callable[[StepReport], None]
    on_health: Callable[[bool], None]


class Engine:
    """Continuous batching over both lanes.

    Args:
        runtime: Loaded weights.
        lanes: Limits of each lane.
        hooks: Called on the event loop.
        failure_limit: Failed calls in a row after which the engine is not healthy.
    """

    def __init__(
        self, runtime: Runtime, lanes: Sequence[LaneLimits], hooks: Hooks, failure_limit: int
    ) -> None:
        self._stepper = Stepper(runtime, lanes)
        self._scheduler = Scheduler(lanes)
        self._hooks = hooks
        self._failure_limit = failure_limit
        self._failures = 0
        self._wake = threading.Condition()
        self._samples: dict[int, Sample] = {}
        self._ids = itertools.count()
        self._open = False
        self._stopping = False
        self._dead = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._warm: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Makes and warms the pools on the engine's thread; returns when it takes requests."""
        self._loop = asyncio.get_running_loop()
        self._warm = self._loop.create_future()
        self._thread = threading.Thread(target=self._main, name="edge-engine", daemon=True)
        self._thread.start()
        await self._warm

    async def stop(self) -> None:
        """Ends the thread after the step that is under way; what still runs fails."""
        with self._wake:
            self._stopping = True
            self._open = False
            self._wake.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def submit(self, job: Job) -> None:
        """Queues a job; its sink gets events until `FinishedEvent` or `FailedEvent`.

        Raises:
            InvalidField, QueueFull, ContextTooLong, DeadlineExceeded: As `Scheduler.add`.
            Draining: The engine takes no more requests.
            EngineFailed: It is dead.
        """
        with self._wake:
            if self._dead:
                raise engine_failed()
            if not self._open:
                raise Draining("the edge engine takes no requests")
            ids = tuple(next(self._ids) for _ in job.answers)
            spec = SequenceSpec(
                id=ids[0],
                tenant=job.tenant,
                prompt_tokens=len(job.prompt),
                max_output_tokens=job.max_tokens,
                expires_at=job.expires_at,
                also=ids[1:],
            )
            self._scheduler.add(job.lane, spec, time.monotonic())
            job.ids = ids
            self._samples.update({one: Sample(job, index) for index, one in enumerate(ids)})
            self._wake.notify()

    def abort(self, job: Job) -> None:
        """The caller left: its place is free from the next step on, and no event follows."""
        with self._wake:
            for one in job.ids:
                if one in self._samples and self._scheduler.abort(one):
                    for gone in job.ids:
                        self._samples.pop(gone, None)
            self._wake.notify()

    def view(self) -> tuple[LaneView, ...]:
        """Load of each lane now."""
        with self._wake:
            return self._scheduler.view(time.monotonic())

    def _main(self) -> None:
        try:
            speeds = self._stepper.open()
        except Exception as exc:
            self._call(self._started, exc)
            return
        now = time.monotonic()
        for lane, speed in speeds.items():
            self._scheduler.prime(lane, speed.prefill_ms_per_token, speed.decode_ms, now)
        with self._wake:
            self._open = not self._stopping  # a signal may come while the pools warm
        self._call(self._started, None)
        try:
            while (step := self._next_step()) is not None:
                self._perform(step)
        except Exception:
            _log.exception("engine_died")
            self._dead = True
            self._call(self._hooks.on_health, False)
        self._close()

    def _started(self, error: Exception | None) -> None:
        if self._warm is None or self._warm.done():
            return
        if error is None:
            self._warm.set_result(None)
        else:
            self._warm.set_exception(error)

    def _next_step(self) -> Step | None:
        """Waits for something to do; None when the engine is to stop."""
        with self._wake:
            while self._open:
                now = time.monotonic()
                step = self._scheduler.next_step(now)
                if step.work is not None or step.ended:
                    return step
                self._wake.wait(None if step.wake_at is None else max(0.0, step.wake_at - now))
            return None

    def _perform(self, step: Step) -> None:
        events = self._drop(step.ended)
        report = None
        self._stepper.move(step.moves)
        if step.work is not None:
            began = time.monotonic()
            outcome = self._run(step.work, began)
            events += outcome.events
            report = _report(step.work, (time.monotonic() - began) * 1000.0)
        self._call(self._deliver, events, report)

    def _run(self, work: PrefillWork | DecodeWork, began: float) -> Outcome:
        try:
            outcome = self._stepper.run(work, self._samples)
        except Exception:
            _log.exception("step_failed", lane=work.lane, kind=type(work).__name__)
            return self._fail(work, began)
        now = time.monotonic()
        with self._wake:
            moves = self._scheduler.advance(work, outcome.finished, (now - began) * 1000.0, now)
            for one in outcome.finished:
                del self._samples[one]
        self._stepper.move(moves)
        if self._failures >= self._failure_limit:
            self._call(self._hooks.on_health, True)
        self._failures = 0
        return outcome

    def _fail(self, work: PrefillWork | DecodeWork, began: float) -> Outcome:
        with self._wake:
            lost = self._scheduler.fail(work, (time.monotonic() - began) * 1000.0)
            jobs = [self._samples.pop(one).job for one in lost]
        self._failures += 1
        if self._failures == self._failure_limit:
            self._call(self._hooks.on_health, False)
        return Outcome([(job, FailedEvent(engine_failed())) for job in jobs])

    def _drop(self, ended: Sequence[Ended]) -> list[tuple[Job, Event]]:
        with self._wake:
            jobs = [(self._samples.pop(one.id).job, one.state) for one in ended]
        late = DeadlineExceeded("the deadline passed before the answer was whole")
        return [(job, FailedEvent(late)) for job, state in jobs if state is State.EXPIRED]

    def _close(self) -> None:
        with self._wake:
            self._open = False
            jobs, self._samples = [one.job for one in self._samples.values()], {}
        error: TandemError = engine_failed()
        self._call(self._deliver, [(job, FailedEvent(error)) for job in jobs], None)

    def _deliver(self, events: Sequence[tuple[Job, Event]], report: StepReport | None) -> None:
        for job, event in events:
            job.sink.push(event)
        if report is not None:
            self._hooks.on_step(report)

    def _call(self, function: Callable[..., None], *args: object) -> None:
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:  # the loop is closed: nobody listens any more
            _log.warning("engine_unheard", event_name=function.__name__)


def _report(work: PrefillWork | DecodeWork, cost_ms: float) -> StepReport:
    if isinstance(work, PrefillWork):
        return StepReport(work.lane, 0, work.count, cost_ms)
    return StepReport(work.lane, len(work.ids), 0, cost_ms)
