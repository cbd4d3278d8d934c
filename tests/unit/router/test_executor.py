"""The executor over scripted targets: one answer, never stitched, whatever happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.breaker import BreakerSettings
from services.common.contract import AnyText, check_labels
from services.common.deadline import Budget
from services.common.errors import Code
from services.common.vocabulary import (
    AttemptOutcome,
    FallbackType,
    Level,
    Reason,
    StreamMode,
    Target,
)
from services.router.ask import Ask
from services.router.config import RouterBreakers
from services.router.execute.executor import Errand, Executor
from services.router.execute.trail import Reply, Trail
from services.router.policy.config import LatencyPolicy
from services.router.policy.decide import decide
from services.router.policy.facts import CloudFacts, Facts, Screening, TextFeatures
from services.router.state.breakers import Breakers
from services.router.state.cloud_latency import CloudLatency
from services.router.targets.base import Began, ModelEvent, Piece
from services.router.tenants import Tenant
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2
from tests.fakes.targets import CollectingSink, ScriptedTarget, answer, failure
from tests.unit.router.builders import SHIPPED, make_facts

E, S, L = Target.EDGE, Target.CLOUD_SMALL, Target.CLOUD_LARGE
DOWN = failure(Code.UNAVAILABLE, "EDGE_DOWN")


def make_ask(budget_ms: float = 8_000.0, mode: StreamMode = StreamMode.COMMIT) -> Ask:
    now = time.monotonic()
    turn = chat_pb2.Message(role=chat_pb2.ROLE_USER, content="hello")
    return Ask(
        request=router_pb2.RouteRequest(messages=[turn]),
        request_id="r1",
        tenant=Tenant(name="t"),
        channel="api",
        session_id="",
        budget=Budget(int(budget_ms), 0, now, now + budget_ms / 1000.0),
        task_type="open_question",
        mode=mode,
        check=AnyText(),
        free_text=True,
    )


async def run(
    targets: dict[Target, ScriptedTarget], ask: Ask, facts: Facts
) -> tuple[Reply, Trail, CollectingSink]:
    facts = replace(facts, expires_at=ask.budget.expires_at)
    plan = decide(facts, SHIPPED, ask.budget.received_at)
    trail, sink = Trail(), CollectingSink()
    executor = Executor(targets, CloudLatency(), Breakers(RouterBreakers()), time.monotonic)
    reply = await executor.run(Errand(ask, facts, SHIPPED, plan, sink, trail))
    return reply, trail, sink


def targets(**scripts: Sequence[ModelEvent | Exception | float]) -> dict[Target, ScriptedTarget]:
    return {Target[name]: ScriptedTarget(scripts.get(name, [])) for name in (E, S, L)}


async def test_the_edge_serves() -> None:
    reply, trail, sink = await run(targets(EDGE=answer("Rome. Yes.")), make_ask(), make_facts())
    assert (reply.level, reply.target, reply.text) == (Level.L0, E, "Rome. Yes.")
    assert reply.fallback_type is FallbackType.NONE
    assert sink.text == "Rome. Yes."
    assert [record.outcome for record in trail.attempts] == [AttemptOutcome.ACCEPTED]


async def test_a_dead_edge_before_commit_leaves_no_trace_in_the_text() -> None:
    models = targets(
        EDGE=[Began("fake"), Piece("Ro"), DOWN], CLOUD_SMALL=answer("The cloud says Rome.")
    )
    reply, _, sink = await run(models, make_ask(), make_facts())
    assert (reply.level, reply.fallback_type) == (Level.L2, FallbackType.UNAVAILABLE)
    assert sink.text == reply.text == "The cloud says Rome."


async def test_a_dead_edge_after_commit_is_a_marked_part_and_nothing_is_stitched() -> None:
    models = targets(
        EDGE=[Began("fake"), Piece("One. "), Piece("Tw"), DOWN], CLOUD_SMALL=answer("cloud")
    )
    reply, trail, sink = await run(models, make_ask(), make_facts())
    assert reply.partial
    assert reply.finish_reason == chat_pb2.FINISH_REASON_INTERRUPTED
    assert sink.text == reply.text == "One. Tw"
    assert models[S].jobs == []
    assert trail.attempts[0].error_reason == "EDGE_DOWN"


async def test_a_late_edge_is_thrown_away_whole() -> None:
    models = targets(EDGE=[Began("fake"), Piece("slow"), 30.0], CLOUD_SMALL=answer("The cloud."))
    ask = make_ask(budget_ms=1_900.0)
    reply, trail, sink = await run(models, ask, make_facts())
    assert reply.fallback_type is FallbackType.TIMEOUT
    assert sink.text == "The cloud."
    assert trail.attempts[0].outcome is AttemptOutcome.TIMED_OUT
    assert models[E].closed == 1


async def test_an_edge_that_turns_out_slow_is_left_for_the_cloud() -> None:
    """64 tokens are expected; at 50 ms each they cannot come before 2.2 s are over."""
    slow = [Began("fake"), *[step for _ in range(60) for step in (Piece("word "), 0.05)]]
    models = targets(EDGE=slow, CLOUD_SMALL=answer("The cloud."))
    ask = make_ask(budget_ms=2_200.0, mode=StreamMode.HOLD)
    facts = make_facts(cloud={S: CloudFacts(300.0), L: CloudFacts(300.0)})
    reply, trail, sink = await run(models, ask, facts)
    assert (reply.fallback_type, sink.text) == (FallbackType.TIMEOUT, "The cloud.")
    # The cap alone would have said ATTEMPT_TIMED_OUT.
    assert trail.attempts[0].error_reason == "TOO_SLOW"


async def test_a_silent_edge_is_left_when_the_second_look_is_due() -> None:
    """A process that stopped sends nothing: its cap of 1.3 s would leave the cloud too little."""
    models = targets(EDGE=[Began("fake"), 30.0], CLOUD_SMALL=answer("The cloud."))
    facts = make_facts(cloud={S: CloudFacts(300.0), L: CloudFacts(300.0)})
    reply, trail, _ = await run(models, make_ask(budget_ms=2_000.0), facts)
    assert (reply.fallback_type, reply.target) == (FallbackType.TIMEOUT, S)
    assert trail.attempts[0].duration_ms < trail.attempts[0].cap_ms


async def test_committed_text_is_never_left_for_being_slow() -> None:
    slow = [Began("fake"), Piece("One. "), *[s for _ in range(20) for s in (Piece("a "), 0.05)]]
    models = targets(EDGE=[*slow, *answer("end")[1:]], CLOUD_SMALL=answer("The cloud."))
    facts = make_facts(cloud={S: CloudFacts(300.0), L: CloudFacts(300.0)})
    reply, _, _ = await run(models, make_ask(budget_ms=2_200.0), facts)
    assert reply.target is E
    assert models[S].jobs == []


async def test_provisional_text_is_withdrawn() -> None:
    models = targets(EDGE=[Began("fake"), Piece("Ro"), DOWN], CLOUD_SMALL=answer("The cloud."))
    _, _, sink = await run(models, make_ask(mode=StreamMode.PROVISIONAL), make_facts())
    assert [committed for _, _, committed in sink.shown[:1]] == [False]
    assert len(sink.withdrawn) == 1


async def test_a_broken_contract_goes_on_and_is_held() -> None:
    ask = replace(make_ask(), check=check_labels("f", ["yes", "no"]), free_text=False)
    models = targets(EDGE=answer("Perhaps. Who knows."), CLOUD_SMALL=answer("yes"))
    reply, trail, sink = await run(models, ask, make_facts())
    assert (reply.text, reply.fallback_type) == ("yes", FallbackType.QUALITY)
    assert sink.text == "yes"
    assert trail.attempts[0].outcome is AttemptOutcome.REJECTED


async def test_an_edge_that_refuses_the_request_is_no_outage() -> None:
    models = targets(
        EDGE=[failure(Code.INVALID_ARGUMENT, "CONTEXT_TOO_LONG")], CLOUD_SMALL=answer("Fine.")
    )
    reply, trail, _ = await run(models, make_ask(), make_facts())
    assert reply.fallback_type is FallbackType.CAPABILITY
    assert trail.attempts[0].error_reason == "CONTEXT_TOO_LONG"


async def test_a_rejected_draft_is_the_last_resort_of_a_pinned_request() -> None:
    facts = make_facts(screening=Screening(("PHONE",)))
    models = targets(EDGE=[Began("fake"), Piece("One. Two. Thr"), DOWN])
    reply, _, _ = await run(models, make_ask(mode=StreamMode.HOLD), facts)
    assert (reply.level, reply.text) == (Level.L4, "One. Two.")
    assert reply.degraded and "human check advised" in reply.notice


async def test_nothing_at_all_gives_a_canned_reply() -> None:
    models = targets(EDGE=[DOWN], CLOUD_SMALL=[DOWN], CLOUD_LARGE=[DOWN])
    reply, trail, sink = await run(models, make_ask(), make_facts())
    assert (reply.level, reply.target) == (Level.L4, Target.FALLBACK)
    assert reply.options and sink.text == reply.text
    assert [record.level for record in trail.attempts] == [Level.L0, Level.L2, Level.L3]


async def test_the_shorter_prompt_halves_the_cap_and_drops_the_examples() -> None:
    facts = make_facts(features=TextFeatures(30, 13, few_shot_tokens=9))
    ask = replace(make_ask(), check=check_labels("f", ["yes", "no"]), free_text=False)
    models = targets(EDGE=answer("Perhaps."), CLOUD_SMALL=answer("no"))
    _, trail, _ = await run(models, ask, facts)
    assert [record.level for record in trail.attempts] == [Level.L0, Level.L1, Level.L2]
    assert [job.level for job in models[E].jobs] == [Level.L0, Level.L1]


async def test_cancellation_closes_the_target_and_records_the_attempt() -> None:
    models = targets(EDGE=[Began("fake"), Piece("a"), 30.0])
    ask, trail = make_ask(), Trail()
    facts = replace(make_facts(), expires_at=ask.budget.expires_at)
    plan = decide(facts, SHIPPED, ask.budget.received_at)
    executor = Executor(models, CloudLatency(), Breakers(RouterBreakers()), time.monotonic)
    task = asyncio.create_task(
        executor.run(Errand(ask, facts, SHIPPED, plan, CollectingSink(), trail))
    )
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert models[E].closed == 1
    assert [record.outcome for record in trail.attempts] == [AttemptOutcome.CANCELLED]


async def test_an_open_breaker_skips_and_says_so_and_one_probe_closes_it() -> None:
    settings = RouterBreakers(cloud=BreakerSettings(min_calls=3, failure_share=0.5, cool_s=0.2))
    breakers, facts = Breakers(settings), make_facts(permitted=frozenset({S}))
    models = targets(CLOUD_SMALL=[DOWN])
    executor = Executor(models, CloudLatency(), breakers, time.monotonic)

    async def once() -> tuple[Reply, Trail]:
        ask, trail = make_ask(), Trail()
        now = replace(facts, expires_at=ask.budget.expires_at)
        plan = decide(now, SHIPPED, ask.budget.received_at)
        reply = await executor.run(Errand(ask, now, SHIPPED, plan, CollectingSink(), trail))
        return reply, trail

    for _ in range(3):
        await once()
    assert breakers.open(S, time.monotonic())
    reply, trail = await once()
    assert (reply.level, reply.reason) == (Level.L4, Reason.BREAKER_OPEN)
    assert [record.outcome for record in trail.attempts] == [AttemptOutcome.SKIPPED]
    assert len(models[S].jobs) == 3
    await asyncio.sleep(0.25)
    models[S].script = answer("Back again.")
    reply, _ = await once()
    assert reply.text == "Back again."
    assert not breakers.open(S, time.monotonic())


async def test_an_edge_behind_an_open_breaker_is_asked_where_nothing_else_is_left() -> None:
    settings = BreakerSettings(min_calls=1, failure_share=0.1, cool_s=60.0)
    breakers = Breakers(RouterBreakers(edge=settings, cloud=settings))
    models = targets(EDGE=[DOWN], CLOUD_SMALL=[DOWN], CLOUD_LARGE=[DOWN])
    executor = Executor(models, CloudLatency(), breakers, time.monotonic)

    async def once() -> Reply:
        ask = make_ask()
        facts = replace(make_facts(), expires_at=ask.budget.expires_at)
        plan = decide(facts, SHIPPED, ask.budget.received_at)
        return await executor.run(Errand(ask, facts, SHIPPED, plan, CollectingSink(), Trail()))

    assert (await once()).level is Level.L4
    assert all(breakers.open(target, time.monotonic()) for target in (E, S))
    models[E].script = answer("Here I am.")
    assert (await once()).text == "Here I am."
    # It was no probe: the breaker stays as it was.
    assert breakers.open(E, time.monotonic())


async def test_bad_requests_and_leaving_callers_never_open_a_breaker() -> None:
    breakers = Breakers(RouterBreakers(edge=BreakerSettings(min_calls=1, failure_share=0.1)))
    models = targets(EDGE=[failure(Code.INVALID_ARGUMENT)], CLOUD_SMALL=answer("Fine."))
    executor = Executor(models, CloudLatency(), breakers, time.monotonic)
    ask = make_ask()
    facts = replace(make_facts(), expires_at=ask.budget.expires_at)
    plan = decide(facts, SHIPPED, ask.budget.received_at)
    await executor.run(Errand(ask, facts, SHIPPED, plan, CollectingSink(), Trail()))
    models[E].script = [30.0]
    task = asyncio.create_task(
        executor.run(Errand(ask, facts, SHIPPED, plan, CollectingSink(), Trail()))
    )
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not breakers.open(E, time.monotonic())


endings = st.sampled_from(
    [
        [],
        [DOWN],
        [Began("fake"), DOWN],
        [Began("fake"), Piece("One. "), DOWN],
        [Began("fake"), Piece("One. "), Piece("two")],
        answer("A whole answer. Really."),
        answer(""),
        [failure(Code.INVALID_ARGUMENT)],
        [failure(Code.DEADLINE_EXCEEDED)],
        [failure(Code.RESOURCE_EXHAUSTED)],
    ]
)


@settings(max_examples=300, deadline=None)
@given(edge=endings, small=endings, large=endings, mode=st.sampled_from(list(StreamMode)))
def test_text_shown_is_the_text_of_one_source(
    edge: Sequence[ModelEvent | Exception | float],
    small: Sequence[ModelEvent | Exception | float],
    large: Sequence[ModelEvent | Exception | float],
    mode: StreamMode,
) -> None:
    models = targets(EDGE=edge, CLOUD_SMALL=small, CLOUD_LARGE=large)
    reply, trail, sink = asyncio.run(run(models, make_ask(mode=mode), make_facts()))
    standing = sink.shown
    if sink.withdrawn:
        # What stands is what came from the target that served.
        standing = [entry for entry in sink.shown if entry[1] is reply.target]
    assert len({target for _, target, _ in standing}) <= 1
    assert "".join(text for text, _, _ in standing) == reply.text
    indices = [record.index for record in trail.attempts]
    assert indices == sorted(set(indices))
    assert reply.text.strip() or reply.partial


async def test_a_cloud_attempt_given_up_late_counts_as_at_least_so_slow() -> None:
    models = targets(CLOUD_SMALL=[Began("fake"), 30.0], CLOUD_LARGE=[Began("fake"), 30.0])
    latency, ask = CloudLatency(), make_ask(budget_ms=300.0)
    facts = make_facts(
        expires_at=ask.budget.expires_at,
        permitted=frozenset({S}),
        cloud={S: CloudFacts(eta_ms=100.0), L: CloudFacts(eta_ms=100.0)},
    )
    executor = Executor(models, latency, Breakers(RouterBreakers()), time.monotonic)
    for _ in range(5):
        now = time.monotonic()
        again = replace(ask, budget=Budget(300, 0, now, now + 0.3))
        seen = replace(facts, expires_at=again.budget.expires_at)
        plan = decide(seen, SHIPPED, now)
        await executor.run(Errand(again, seen, SHIPPED, plan, CollectingSink(), Trail()))
    assert latency.facts(LatencyPolicy(), time.monotonic())[S].eta_ms >= 200.0
    assert latency.facts(LatencyPolicy(), time.monotonic())[S].eta_ms < 1_500.0
