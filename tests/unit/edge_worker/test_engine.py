"""The engine thread: whole answers, isolated failures, freed places."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from services.common.errors import DeadlineExceeded, EngineFailed, QueueFull, TandemError
from services.common.vocabulary import FinishReason
from services.edge_worker.answer import Answer, AnswerSpec
from services.edge_worker.engine import Engine, Hooks, StepReport
from services.edge_worker.events import (
    DeltaEvent,
    Event,
    FailedEvent,
    FinishedEvent,
    StartedEvent,
)
from services.edge_worker.job import Job
from services.edge_worker.sampling import SamplingParams, sample_seed
from services.edge_worker.scheduler.lane import LaneLimits
from services.edge_worker.scheduler.plan import LaneName
from tests.fakes.burn_runtime import EOS, BurnRuntime, BurnSettings, ByteDecoder

PATIENCE_S = 20.0


class Listener:
    """Keeps what a job was told."""

    def __init__(self, samples: int = 1) -> None:
        self.events: list[Event] = []
        self.done = asyncio.Event()
        self._running = samples

    def push(self, event: Event) -> None:
        self.events.append(event)
        self._running -= isinstance(event, FinishedEvent)
        if not self._running or isinstance(event, FailedEvent):
            self.done.set()

    def text_of(self, sample: int) -> str:
        mine = [one for one in self.events if isinstance(one, DeltaEvent) and one.sample == sample]
        return "".join(one.text for one in mine)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, DeltaEvent))

    @property
    def error(self) -> TandemError | None:
        last = self.events[-1]
        return last.error if isinstance(last, FailedEvent) else None


class Watched:
    """An engine and what its hooks were told."""

    def __init__(self, runtime: BurnRuntime, lanes: list[LaneLimits]) -> None:
        self.steps: list[StepReport] = []
        self.health: list[bool] = []
        hooks = Hooks(on_step=self.steps.append, on_health=self.health.append)
        self.engine = Engine(runtime, lanes, hooks, failure_limit=2)

    def submit(
        self,
        text: str,
        max_tokens: int = 64,
        life_s: float = 60.0,
        answers: Sequence[AnswerSpec] = (),
    ) -> tuple[Job, Listener]:
        listener = Listener(max(1, len(answers)))
        spec = AnswerSpec(SamplingParams(), 0, max_tokens, end_ids=frozenset({EOS}))
        job = Job(
            lane=LaneName.SIMPLE,
            tenant="t",
            prompt=tuple(text.encode()),
            max_tokens=max_tokens,
            expires_at=time.monotonic() + life_s,
            answers=tuple(Answer(one, ByteDecoder(1)) for one in answers or [spec]),
            sink=listener,
        )
        self.engine.submit(job)
        return job, listener

    async def ask(self, text: str, max_tokens: int = 64) -> Listener:
        _, listener = self.submit(text, max_tokens)
        await asyncio.wait_for(listener.done.wait(), PATIENCE_S)
        return listener


def lane(name: LaneName, max_queue: int) -> LaneLimits:
    return LaneLimits(
        name=name,
        slots=4,
        max_batch_size=4,
        row_tokens=256,
        pool_tokens=1024,
        max_queue=max_queue,
        max_wait_ms=1.0,
        prefill_chunk_tokens=16,
        prefill_chunk_ms=0.0,
        share=1.0,
    )


@asynccontextmanager
async def engine(max_queue: int = 64, **changes: object) -> AsyncIterator[Watched]:
    quick: dict[str, object] = {"decode_ms": 0.2, "prefill_token_ms": 0.0, "burn": False}
    runtime = BurnRuntime(BurnSettings.model_validate({**quick, **changes}))
    watched = Watched(runtime, [lane(name, max_queue) for name in LaneName])
    await watched.engine.start()
    try:
        yield watched
    finally:
        await watched.engine.stop()


async def until(holds: Callable[[], bool]) -> None:
    """Waits until it holds."""
    for _ in range(int(PATIENCE_S / 0.002)):
        if holds():
            return
        await asyncio.sleep(0.002)
    raise TimeoutError


async def test_answers_do_not_depend_on_company() -> None:
    """Rows join, leave and move all the time; a mixed-up row would show in the text."""
    prompts = [f"{'x' * (i * 7 % 50)}{i}" for i in range(20)]
    async with engine() as one:
        alone = [(await one.ask(text, 5 + i)).text for i, text in enumerate(prompts)]
        answers: list[Awaitable[Listener]] = [
            one.ask(text, 5 + i) for i, text in enumerate(prompts)
        ]
        together = [listener.text for listener in await asyncio.gather(*answers)]
        shared = sum(view.shared_steps for view in one.engine.view())
    assert together == alone
    assert len(set(alone)) == len(alone)
    assert shared > 0


async def test_finished_says_why() -> None:
    async with engine(answer_tokens=3) as one:
        whole = (await one.ask("a")).events[-1]
        cut = (await one.ask("a", 2)).events[-1]
    assert isinstance(whole, FinishedEvent)
    assert isinstance(cut, FinishedEvent)
    assert (whole.reason, whole.output_tokens) == (FinishReason.STOP, 4)
    assert (cut.reason, cut.output_tokens) == (FinishReason.LENGTH, 2)
    assert whole.started_at <= whole.first_token_at <= whole.at


async def test_failed_step_fails_its_own_sequences_only() -> None:
    async with engine(fail_on="boom", answer_tokens=0) as one:
        _, healthy = one.submit("fine", max_tokens=150)
        failed = await one.ask("boom")
        await asyncio.wait_for(healthy.done.wait(), PATIENCE_S)
        free = one.engine.view()[0].kv_used_tokens
    assert isinstance(failed.error, EngineFailed)
    assert healthy.error is None
    assert len(healthy.text) == 150
    assert free == 0


async def test_health_is_lost_after_failures_in_a_row_and_comes_back() -> None:
    async with engine(fail_on="boom") as one:
        for _ in range(2):
            await one.ask("boom")
        await until(lambda: one.health == [False])
        await one.ask("fine")
        await until(lambda: one.health == [False, True])


async def test_abort_frees_the_place_and_says_nothing_more() -> None:
    async with engine(answer_tokens=0, decode_ms=2.0) as one:
        job, listener = one.submit("a", max_tokens=200)
        await until(lambda: bool(listener.text))
        one.engine.abort(job)
        steps = one.engine.view()[0].steps
        await until(lambda: one.engine.view()[0].active == 0)
        assert one.engine.view()[0].steps - steps <= 1
        assert one.engine.view()[0].kv_used_tokens == 0
        one.engine.abort(job)
    assert not listener.done.is_set()


async def test_waiting_one_is_aborted_at_once() -> None:
    async with engine(answer_tokens=0, decode_ms=5.0) as one:
        jobs = [one.submit("a", max_tokens=200)[0] for _ in range(6)]
        await until(lambda: one.engine.view()[0].active == 4)
        one.engine.abort(jobs[5])
        assert one.engine.view()[0].queued == 1


async def test_full_queue_refuses() -> None:
    async with engine(max_queue=1, answer_tokens=0, decode_ms=5.0) as one:
        for _ in range(4):
            one.submit("a", max_tokens=200)
            await until(lambda: one.engine.view()[0].queued == 0)
        one.submit("a")
        with pytest.raises(QueueFull) as caught:
            one.submit("a")
    assert caught.value.retry_after_ms is not None


async def test_deadline_ends_a_running_answer() -> None:
    async with engine(answer_tokens=0, decode_ms=5.0) as one:
        _, listener = one.submit("a", max_tokens=200, life_s=0.2)
        await asyncio.wait_for(listener.done.wait(), PATIENCE_S)
        assert one.engine.view()[0].active == 0
    assert isinstance(listener.error, DeadlineExceeded)


async def test_stop_fails_what_still_runs() -> None:
    async with engine(answer_tokens=0, decode_ms=5.0) as one:
        _, listener = one.submit("a", max_tokens=200)
        await until(lambda: bool(listener.text))
    await asyncio.wait_for(listener.done.wait(), PATIENCE_S)
    assert isinstance(listener.error, EngineFailed)


async def test_stop_while_warming_ends_the_thread() -> None:
    """Found with SIGTERM during start: the thread opened after it had been closed."""
    runtime = BurnRuntime(BurnSettings(warm_ms=200.0, burn=False))
    hooks = Hooks(on_step=lambda _: None, on_health=lambda _: None)
    one = Engine(runtime, [lane(name, 4) for name in LaneName], hooks, failure_limit=2)
    starting = asyncio.create_task(one.start())
    await asyncio.sleep(0.05)
    starting.cancel()
    await asyncio.wait_for(one.stop(), PATIENCE_S)


async def test_loop_is_free_while_the_runtime_works() -> None:
    async with engine(decode_ms=100.0, answer_tokens=4) as one:
        _, listener = one.submit("a")
        turns = 0
        while not listener.done.is_set():
            await asyncio.sleep(0.001)
            turns += 1
    assert turns > 100


async def test_idle_engine_sleeps() -> None:
    async with engine() as one:
        await one.ask("a")
        before = time.process_time()
        await asyncio.sleep(0.5)
        assert time.process_time() - before < 0.25


def warm(index: int, max_tokens: int = 20) -> AnswerSpec:
    """One of several samples, drawn with a seed of its own."""
    return AnswerSpec(
        SamplingParams(temperature=1.0),
        sample_seed(7, index),
        max_tokens,
        end_ids=frozenset({EOS}),
        sample=index,
    )


async def test_samples_share_a_prefill_and_each_is_as_alone() -> None:
    async with engine(peak=3.0) as one:
        _, together = one.submit("tell", 20, answers=[warm(i) for i in range(3)])
        others = [one.submit(f"x{i}", 30)[1] for i in range(5)]
        await asyncio.wait_for(together.done.wait(), PATIENCE_S)
        alone = []
        for index in range(3):
            _, listener = one.submit("tell", 20, answers=[replace(warm(index), sample=0)])
            await asyncio.wait_for(listener.done.wait(), PATIENCE_S)
            alone.append(listener.text)
        for other in others:
            await asyncio.wait_for(other.done.wait(), PATIENCE_S)
        prefills = sum(step.prefill_tokens for step in one.steps)
    assert [together.text_of(index) for index in range(3)] == alone
    assert len(set(alone)) == 3
    assert sum(isinstance(event, StartedEvent) for event in together.events) == 1
    ends = [event for event in together.events if isinstance(event, FinishedEvent)]
    assert sorted(event.sample for event in ends) == [0, 1, 2]
    assert prefills == 4 * len("tell") + 5 * len("x0")


async def test_abort_ends_all_samples() -> None:
    async with engine(answer_tokens=0, decode_ms=2.0) as one:
        job, listener = one.submit("a", 200, answers=[warm(i, 200) for i in range(3)])
        await until(lambda: bool(listener.text_of(2)))
        waiting, _ = one.submit("b", 200, answers=[warm(i, 200) for i in range(4)])
        one.engine.abort(waiting)
        assert one.engine.view()[0].queued == 0
        one.engine.abort(job)
        await until(lambda: one.engine.view()[0].active == 0)
        assert one.engine.view()[0].kv_used_tokens == 0
    assert not listener.done.is_set()
