"""Grey mode `shadow_best`: both at once, one answer, never a mixture."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.vocabulary import (
    AttemptOutcome,
    FallbackType,
    Level,
    Reason,
    StreamMode,
    Target,
)
from services.router.config import RouterBreakers
from services.router.execute.executor import Errand, Executor
from services.router.execute.trail import Reply, Trail
from services.router.policy.decide import decide
from services.router.policy.facts import ComplexityFacts, TextFeatures
from services.router.state.breakers import Breakers
from services.router.state.cloud_latency import CloudLatency
from services.router.targets.base import Began, Done, ModelEvent, Piece
from tests.fakes.targets import CollectingSink, ScriptedTarget, answer
from tests.unit.router.builders import make_facts, with_complexity
from tests.unit.router.test_executor import DOWN, E, L, S, make_ask, targets

BEST = with_complexity(grey_mode="shadow_best")
GREY = {
    "complexity": ComplexityFacts(probability=0.58),
    "features": TextFeatures(input_chars=600, input_tokens=200),
}
Script = list[ModelEvent | Exception | float]


async def run(
    models: dict[Target, ScriptedTarget], mode: StreamMode = StreamMode.COMMIT
) -> tuple[Reply, Trail, CollectingSink]:
    ask = make_ask(mode=mode)
    facts = make_facts(expires_at=ask.budget.expires_at, **GREY)
    plan = decide(facts, BEST, ask.budget.received_at)
    assert (plan.reason, plan.shadow_best) == (Reason.GREY_SHADOW, True)
    trail, sink = Trail(), CollectingSink()
    executor = Executor(models, CloudLatency(), Breakers(RouterBreakers()), time.monotonic)
    reply = await executor.run(Errand(ask, facts, BEST, plan, sink, trail))
    assert sink.text == reply.text
    return reply, trail, sink


def with_logprob(text: str, mean: float) -> Script:
    *pieces, done = answer(text)
    assert isinstance(done, Done)
    return [*pieces, replace(done, mean_logprob=mean, min_logprob=mean)]


def sure(text: str, wait_s: float = 0.0) -> Script:
    """An edge answer that its judge accepts."""
    return [wait_s, *with_logprob(text, -0.01)]


def unsure(text: str) -> Script:
    return with_logprob(text, -5.0)


def outcomes(trail: Trail) -> dict[Target, AttemptOutcome]:
    return {record.target: record.outcome for record in trail.attempts}


async def test_a_sure_edge_before_the_cloud_serves_and_ends_the_cloud() -> None:
    models = targets(EDGE=sure("The edge."), CLOUD_SMALL=[Began("c"), 30.0])
    reply, trail, _ = await run(models)
    assert (reply.level, reply.target, reply.reason) == (Level.L0, E, Reason.GREY_SHADOW)
    assert (reply.text, reply.fallback_type, reply.degraded) == (
        "The edge.", FallbackType.NONE, False,
    )  # fmt: skip
    assert outcomes(trail) == {E: AttemptOutcome.ACCEPTED, S: AttemptOutcome.CANCELLED}


async def test_the_cloud_is_not_waited_past() -> None:
    models = targets(EDGE=sure("The edge.", 30.0), CLOUD_SMALL=[0.01, *answer("The cloud.")])
    reply, trail, _ = await run(models)
    assert (reply.level, reply.target, reply.text) == (Level.L2, S, "The cloud.")
    assert outcomes(trail) == {E: AttemptOutcome.CANCELLED, S: AttemptOutcome.ACCEPTED}


async def test_an_unsure_edge_waits_for_the_cloud_and_nothing_fell_back() -> None:
    models = targets(EDGE=unsure("The edge."), CLOUD_SMALL=[Began("c"), 0.2, *answer("Cloud.")[1:]])
    reply, trail, _ = await run(models)
    assert (reply.target, reply.text, reply.fallback_type) == (S, "Cloud.", FallbackType.NONE)
    assert outcomes(trail) == {E: AttemptOutcome.REJECTED, S: AttemptOutcome.ACCEPTED}


async def test_a_failed_cloud_leaves_a_sure_edge_to_serve() -> None:
    models = targets(EDGE=sure("The edge.", 0.2), CLOUD_SMALL=[DOWN])
    reply, _, _ = await run(models)
    assert (reply.target, reply.fallback_type, reply.degraded) == (
        E, FallbackType.UNAVAILABLE, True,
    )  # fmt: skip


async def test_where_both_fall_short_the_large_model_is_next_and_the_edge_not_asked_again() -> None:
    models = targets(EDGE=unsure("Edge."), CLOUD_SMALL=[DOWN], CLOUD_LARGE=answer("Large."))
    reply, trail, _ = await run(models)
    assert (reply.level, reply.text) == (Level.L3, "Large.")
    assert len(models[E].jobs) == 1
    assert [record.target for record in trail.attempts] == [S, E, L]


async def test_where_all_fall_short_the_edges_draft_is_the_last_resort() -> None:
    models = targets(EDGE=unsure("Edge."), CLOUD_SMALL=[DOWN], CLOUD_LARGE=[DOWN])
    reply, _, _ = await run(models)
    assert (reply.level, reply.text, reply.degraded) == (Level.L4, "Edge.", True)
    assert len(models[E].jobs) == 1


async def test_a_caller_that_leaves_ends_both() -> None:
    models = targets(EDGE=sure("The edge.", 30.0), CLOUD_SMALL=[Began("c"), 30.0])
    task = asyncio.create_task(run(models))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert models[E].closed == models[S].closed == 1


@given(
    st.sampled_from(["sure", "unsure", "down"]),
    st.sampled_from(["cloud", "down", "cut"]),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from(sorted(StreamMode)),
)
@settings(max_examples=40, deadline=None)
def test_whatever_happens_one_answer_is_shown_whole(
    edge: str, cloud: str, edge_turns: int, cloud_turns: int, mode: StreamMode
) -> None:
    ends: dict[str, Script] = {
        "sure": sure("The edge. Yes."),
        "unsure": unsure("The edge. Yes."),
        "down": [DOWN],
        "cloud": [Began("c"), Piece("The "), Piece("cloud. "), *answer("Yes.")[1:]],
        "cut": [Began("c"), Piece("The cloud. "), DOWN],
    }
    models = targets(
        EDGE=[*[0.0] * edge_turns, *ends[edge]],
        CLOUD_SMALL=[*[0.0] * cloud_turns, *ends[cloud]],
        CLOUD_LARGE=answer("The large."),
    )
    reply, trail, _ = asyncio.run(run(models, mode))
    assert reply.text in {"The edge. Yes.", "The cloud. Yes.", "The cloud. ", "The large."}
    served = [r for r in trail.attempts if r.outcome is AttemptOutcome.ACCEPTED]
    assert len(served) <= 1
