"""The scheduler's promises one by one."""

from __future__ import annotations

import pytest

from services.common.errors import ContextTooLong, DeadlineExceeded, InvalidField, QueueFull
from services.edge_worker.scheduler.plan import DecodeWork, LaneName, PrefillWork
from services.edge_worker.scheduler.scheduler import Scheduler
from services.edge_worker.scheduler.sequence import (
    IllegalTransition,
    Sequence,
    SequenceSpec,
    State,
)
from tests.unit.edge_worker.scheduler.machine import FAR, limits

SIMPLE, COMPLEX = LaneName.SIMPLE, LaneName.COMPLEX


def spec(
    one: int, tenant: str = "a", prompt: int = 4, output: int = 4, at: float = FAR
) -> SequenceSpec:
    return SequenceSpec(one, tenant, prompt, output, at)


def scheduler(**changes: float) -> Scheduler:
    return Scheduler([limits(SIMPLE, **changes), limits(COMPLEX, **changes)])


def run(
    one: Scheduler, steps: int, now: float = 0.0, cost_ms: float = 1.0
) -> list[PrefillWork | DecodeWork]:
    """Runs until idle or `steps` are done; nothing ends."""
    done: list[PrefillWork | DecodeWork] = []
    for _ in range(steps):
        work = one.next_step(now).work
        if work is None:
            break
        one.advance(work, (), cost_ms, now)
        done.append(work)
    return done


def test_prompt_is_read_in_chunks_between_decode_steps() -> None:
    one = scheduler(max_wait_ms=0.0)
    one.add(SIMPLE, spec(0, prompt=4, output=20), 0.0)
    run(one, 1)
    one.add(SIMPLE, spec(1, prompt=20), 0.0)
    kinds = [type(work).__name__ for work in run(one, 6)]
    # The first four tokens use up what the first prompt left of its budget.
    assert kinds == ["PrefillWork", "DecodeWork"] * 3


def test_several_short_prompts_share_one_budget() -> None:
    one = scheduler()
    for i in range(3):
        one.add(SIMPLE, spec(i, prompt=2), 0.0)
    works = run(one, 4)
    assert [type(work) for work in works] == [PrefillWork] * 3 + [DecodeWork]
    assert isinstance(works[3], DecodeWork)
    assert works[3].ids == (0, 1, 2)


def test_new_batch_waits_for_company_and_not_longer() -> None:
    one = scheduler(max_wait_ms=5.0)
    one.add(SIMPLE, spec(0), 0.0)
    run(one, 1)
    held = one.next_step(0.001)
    assert held.work is None
    assert held.wake_at == pytest.approx(0.005)
    assert isinstance(one.next_step(0.005).work, DecodeWork)


def test_full_batch_does_not_wait() -> None:
    one = scheduler(max_wait_ms=5.0, max_batch_size=1)
    one.add(SIMPLE, spec(0), 0.0)
    run(one, 1)
    assert isinstance(one.next_step(0.0).work, DecodeWork)


def test_tenants_take_turns() -> None:
    one = scheduler(max_queue=20)
    for i in range(4):
        one.add(SIMPLE, spec(i, "flood"), 0.0)
    one.add(SIMPLE, spec(10, "late"), 0.0)
    first = [work.ids[0] for work in run(one, 3) if isinstance(work, PrefillWork)]
    assert first[:2] == [0, 10]


def test_what_does_not_fit_the_pool_waits_and_then_runs() -> None:
    one = scheduler(pool_tokens=40, max_wait_ms=0.0)
    one.add(SIMPLE, spec(0, prompt=8, output=20), 0.0)
    one.add(SIMPLE, spec(1, prompt=8, output=20), 0.0)
    works = run(one, 5)
    assert {work.ids[0] for work in works if isinstance(work, PrefillWork)} == {0}
    one.abort(0)
    step = one.next_step(0.0)
    assert [gone.id for gone in step.ended] == [0]
    assert isinstance(step.work, PrefillWork)
    assert step.work.ids == (1,)


def test_never_fitting_is_refused_with_both_figures() -> None:
    with pytest.raises(ContextTooLong, match=r"30 tokens of prompt and 20 .* 40 tokens"):
        scheduler().add(SIMPLE, spec(0, prompt=30, output=20), 0.0)


def test_full_queue_says_when_to_come_back() -> None:
    one = scheduler(max_queue=1)
    one.prime(SIMPLE, 10.0, 20.0, 0.0)
    one.add(SIMPLE, spec(0), 0.0)
    with pytest.raises(QueueFull) as caught:
        one.add(SIMPLE, spec(1), 0.0)
    assert caught.value.retry_after_ms == 40


def test_hopeless_deadline_is_refused_at_admission() -> None:
    one = scheduler()
    one.prime(SIMPLE, 10.0, 20.0, 0.0)
    one.add(SIMPLE, spec(0, prompt=20, at=0.21), 0.0)
    with pytest.raises(DeadlineExceeded):
        one.add(SIMPLE, spec(1, prompt=20, at=0.21), 0.0)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_expired_is_dropped_in_every_state(steps: int) -> None:
    one = scheduler(max_wait_ms=0.0)
    one.add(SIMPLE, spec(0, prompt=12, at=1.0), 0.0)
    run(one, steps)
    step = one.next_step(1.0)
    assert [(gone.id, gone.state) for gone in step.ended] == [(0, State.EXPIRED)]
    assert one.view(1.0)[0].kv_used_tokens == 0


def test_failed_step_takes_only_its_own_sequences() -> None:
    one = scheduler(max_wait_ms=0.0)
    one.add(SIMPLE, spec(0, prompt=2, output=20), 0.0)
    run(one, 1)
    one.add(SIMPLE, spec(1, prompt=8), 0.0)
    work = one.next_step(0.0).work
    while not isinstance(work, PrefillWork):
        assert work is not None
        one.advance(work, (), 1.0, 0.0)
        work = one.next_step(0.0).work
    assert one.fail(work, 1.0) == (1,)
    assert one.live_ids() == {0}


def test_lanes_share_time_by_weight() -> None:
    one = Scheduler(
        [
            limits(SIMPLE, row_tokens=4000, pool_tokens=9000, max_wait_ms=0),
            limits(COMPLEX, row_tokens=4000, pool_tokens=9000, max_wait_ms=0),
        ]
    )
    for lane in (SIMPLE, COMPLEX):
        one.add(lane, spec(lane is COMPLEX, prompt=2000, output=1900), 0.0)
    works = run(one, 400, cost_ms=10.0)
    simple = sum(work.lane is SIMPLE for work in works)
    assert simple == pytest.approx(300, abs=3)


def test_lane_at_rest_goes_first_when_it_wakes() -> None:
    one = scheduler()
    one.add(COMPLEX, spec(0, prompt=30), 0.0)
    run(one, 2, cost_ms=500.0)
    one.add(SIMPLE, spec(1), 0.0)
    work = one.next_step(0.0).work
    assert work is not None
    assert work.lane is SIMPLE


def test_illegal_transitions_raise() -> None:
    sequence = Sequence(spec(0), 0.0)
    with pytest.raises(IllegalTransition):
        sequence.join(0)
    with pytest.raises(IllegalTransition):
        sequence.produce()
    with pytest.raises(IllegalTransition):
        sequence.end(State.FINISHED)
    sequence.end(State.ABORTED)
    with pytest.raises(IllegalTransition):
        sequence.start(0.0)


def test_samples_share_one_prefill_and_run_side_by_side() -> None:
    one = scheduler(max_wait_ms=0.0)
    one.add(SIMPLE, SequenceSpec(0, "t", 8, 4, 1e9, (1, 2)), 0.0)
    works = run(one, 2)
    assert [type(work) for work in works] == [PrefillWork, DecodeWork]
    assert works[0].ids == works[1].ids == (0, 1, 2)
    assert one.view(0.0)[0].kv_used_tokens == 3 * 12


def test_samples_wait_for_places_and_pool_for_all_of_them() -> None:
    one = scheduler(max_wait_ms=0.0, max_batch_size=3, pool_tokens=60)
    one.add(SIMPLE, spec(0, prompt=8, output=20), 0.0)
    one.add(SIMPLE, SequenceSpec(1, "t", 8, 12, 1e9, (2,)), 0.0)
    run(one, 3)
    assert one.view(0.0)[0].active == 1
    one.abort(0)
    run(one, 1)
    assert one.view(0.0)[0].active == 2


def test_more_samples_than_places_are_refused() -> None:
    with pytest.raises(InvalidField) as caught:
        scheduler(max_batch_size=2).add(SIMPLE, SequenceSpec(0, "t", 8, 4, 1e9, (1, 2)), 0.0)
    assert caught.value.field == "samples"


def test_a_sample_that_ended_leaves_the_others_alone() -> None:
    one = scheduler(max_wait_ms=0.0)
    one.add(SIMPLE, SequenceSpec(0, "t", 4, 4, 1e9, (1, 2)), 0.0)
    work = one.next_step(0.0).work
    assert isinstance(work, PrefillWork)
    assert [move.dst for move in one.advance(work, {1}, 1.0, 0.0)] == [0, 1]
    assert one.abort(0) is False
    step = one.next_step(0.0)
    assert [gone.id for gone in step.ended] == [0]
    assert isinstance(step.work, DecodeWork)
    assert step.work.ids == (2,)
