"""The attempt state machine: order, caps and the end, whatever happens."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from services.common.vocabulary import AttemptOutcome, FallbackType, Level, Reason, Target
from services.router.policy import machine
from services.router.policy.decide import decide
from services.router.policy.facts import EdgeFacts, Facts, Screening, TextFeatures
from services.router.policy.machine import Enter, LastResort, Served, Skip
from tests.unit.router.builders import SHIPPED, make_facts
from tests.unit.router.test_decide import any_facts

FAILED, TIMED_OUT = AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT


def walk(facts: Facts, ends: list[FallbackType]) -> list[tuple[str, Level | None]]:
    """Runs a plan in which the attempts end as `ends` says; the last entry repeats."""
    plan = decide(facts, SHIPPED, 0.0)
    progress, number = machine.begin(plan), 0
    seen: list[tuple[str, Level | None]] = []
    estimates = machine.estimates_of(facts, plan.expected_output_tokens)
    while True:
        move = machine.next_move(progress, SHIPPED, 8_000.0, estimates)
        if isinstance(move, Enter):
            end = ends[min(number, len(ends) - 1)]
            number += 1
            outcome = AttemptOutcome.ACCEPTED if end is FallbackType.NONE else FAILED
            progress = progress.after(move, outcome, end, Reason.DEFAULT)
            seen.append(("enter", move.attempt.level))
        elif isinstance(move, Skip):
            progress = progress.skipped(move)
            seen.append(("skip", move.attempt.level))
        else:
            seen.append((type(move).__name__, None))
            return seen


def test_a_good_first_answer_is_served() -> None:
    assert walk(make_facts(), [FallbackType.NONE]) == [("enter", Level.L0), ("Served", None)]


def test_quality_goes_to_the_shorter_prompt_only_with_few_shot() -> None:
    few_shot = make_facts(features=TextFeatures(30, 13, few_shot_tokens=9))
    quality = [FallbackType.QUALITY, FallbackType.NONE]
    assert walk(few_shot, quality)[:2] == [("enter", Level.L0), ("enter", Level.L1)]
    assert walk(make_facts(), quality)[:2] == [("enter", Level.L0), ("enter", Level.L2)]


def test_a_timeout_skips_the_shorter_prompt() -> None:
    few_shot = make_facts(features=TextFeatures(30, 13, few_shot_tokens=9))
    assert walk(few_shot, [FallbackType.TIMEOUT, FallbackType.NONE]) == [
        ("enter", Level.L0),
        ("skip", Level.L1),
        ("enter", Level.L2),
        ("Served", None),
    ]


def test_a_dead_cloud_gets_one_quick_edge_attempt() -> None:
    hard = make_facts(features=TextFeatures(30, 13, computes_amounts=True))
    assert walk(hard, [FallbackType.UNAVAILABLE, FallbackType.NONE]) == [
        ("enter", Level.L3),
        ("enter", Level.L0),
        ("Served", None),
    ]


def test_a_dead_large_model_and_a_dead_edge_leave_the_small_one() -> None:
    hard = make_facts(features=TextFeatures(30, 13, computes_amounts=True))
    dead = FallbackType.UNAVAILABLE
    assert walk(hard, [dead, dead, FallbackType.NONE])[2:] == [
        ("enter", Level.L2),
        ("Served", None),
    ]


def test_a_pinned_request_ends_in_the_last_resort() -> None:
    pinned = make_facts(screening=Screening(("PHONE",)))
    assert walk(pinned, [FallbackType.UNAVAILABLE]) == [
        ("enter", Level.L0),
        ("LastResort", None),
    ]


def test_under_the_reserve_the_last_resort_answers_at_once() -> None:
    plan = decide(make_facts(), SHIPPED, 0.0)
    estimates = machine.estimates_of(make_facts(), plan.expected_output_tokens)
    move = machine.next_move(machine.begin(plan), SHIPPED, 49.0, estimates)
    assert move == LastResort(Reason.BUDGET_EXHAUSTED, FallbackType.TIMEOUT)


def test_the_edge_leaves_room_for_the_cloud_that_follows() -> None:
    facts = make_facts()
    plan = decide(facts, SHIPPED, 0.0)
    estimates = machine.estimates_of(facts, plan.expected_output_tokens)
    # 0.7 × 2,950 would be 2,065; the small cloud model needs 1,500 of them.
    assert machine.cap_for(plan, 0, 2_950.0, estimates) == 1_450.0
    # Where the cloud could not fit at all, the edge gets its whole share.
    assert machine.cap_for(plan, 0, 1_000.0, estimates) == 700.0


def test_an_edge_that_cannot_start_in_time_is_skipped_and_recorded_so() -> None:
    pinned = make_facts(
        screening=Screening(("PHONE",)),
        edge=EdgeFacts(up=True, context_tokens=8_192, ttft_ms=9_000.0, tpot_ms=1.0),
    )
    plan = decide(pinned, SHIPPED, 0.0)
    estimates = machine.estimates_of(pinned, plan.expected_output_tokens)
    move = machine.next_move(machine.begin(plan), SHIPPED, 8_000.0, estimates)
    assert isinstance(move, Skip)
    assert move.reason is Reason.LATENCY_PRESSURE
    after = machine.begin(plan).skipped(move)
    assert after.fallback_type is FallbackType.TIMEOUT


endings = st.sampled_from(
    [
        (AttemptOutcome.ACCEPTED, FallbackType.NONE),
        (AttemptOutcome.PARTIAL, FallbackType.UNAVAILABLE),
        (AttemptOutcome.REJECTED, FallbackType.QUALITY),
        (FAILED, FallbackType.UNAVAILABLE),
        (FAILED, FallbackType.CAPABILITY),
        (TIMED_OUT, FallbackType.TIMEOUT),
    ]
)


@given(facts=any_facts, data=st.data(), budget_ms=st.floats(0, 120_000))
def test_every_walk_ends_with_rising_indices_and_caps_within_the_budget(
    facts: Facts, data: st.DataObject, budget_ms: float
) -> None:
    plan = decide(facts, SHIPPED, 0.0)
    progress, estimates = (
        machine.begin(plan),
        machine.estimates_of(facts, plan.expected_output_tokens),
    )
    indices: list[int] = []
    remaining = budget_ms
    for _ in range(len(plan.attempts) + 1):
        move = machine.next_move(progress, SHIPPED, remaining, estimates)
        if isinstance(move, Served | LastResort):
            break
        indices.append(move.index)
        if isinstance(move, Skip):
            progress = progress.skipped(move)
            continue
        assert 0 < move.cap_ms <= remaining - SHIPPED.caps.reserve_ms
        outcome, failure = data.draw(endings)
        remaining -= data.draw(st.floats(0, move.cap_ms))
        progress = progress.after(move, outcome, failure, Reason.DEFAULT)
    else:
        raise AssertionError("the walk did not end")
    assert indices == sorted(set(indices))
    if isinstance(move, LastResort):
        assert move.fallback_type is not FallbackType.NONE


def test_targets_of_a_plan_all_have_estimates() -> None:
    facts = make_facts()
    assert set(machine.estimates_of(facts, 64)) == {
        Target.EDGE,
        Target.CLOUD_SMALL,
        Target.CLOUD_LARGE,
    }


def test_a_dead_edge_is_no_reason_to_pass_the_cloud_over() -> None:
    slow = {target: replace(tier, eta_ms=9_000.0) for target, tier in make_facts().cloud.items()}
    dead = EdgeFacts(up=False, context_tokens=8_192, ttft_ms=10.0, tpot_ms=1.0)
    facts = make_facts(cloud=slow, edge=dead)
    plan = decide(facts, SHIPPED, 0.0)
    estimates = machine.estimates_of(facts, plan.expected_output_tokens)
    move = machine.next_move(machine.begin(plan), SHIPPED, 8_000.0, estimates)
    assert isinstance(move, Enter)
    assert move.attempt.target is not Target.EDGE


def test_the_last_attempt_has_all_that_is_left() -> None:
    facts = make_facts(screening=Screening(("PHONE",)))
    plan = decide(facts, SHIPPED, 0.0)
    estimates = machine.estimates_of(facts, plan.expected_output_tokens)
    assert len(plan.attempts) == 1
    assert machine.cap_for(plan, 0, 1_000.0, estimates) == 1_000.0
