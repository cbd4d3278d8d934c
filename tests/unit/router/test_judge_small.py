"""The small cloud model's answers are judged too: below low they go to the large one."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from services.common.confidence.signals import Signal
from services.common.confidence.thresholds import Calibration, TaskJudging, Thresholds
from services.common.errors import Code
from services.common.vocabulary import AttemptOutcome, FallbackType, Level, Reason, Target
from services.router.config import RouterBreakers
from services.router.execute.executor import Errand, Executor
from services.router.execute.judging import prompt_id
from services.router.execute.trail import Reply, Trail
from services.router.policy.decide import decide
from services.router.policy.judge import Answered, Subject, judge_small
from services.router.state.breakers import Breakers
from services.router.state.cloud_latency import CloudLatency
from services.router.targets.base import Done, ModelEvent
from tests.fakes.targets import CollectingSink, ScriptedTarget, answer, failure
from tests.unit.router.builders import SHIPPED, make_facts
from tests.unit.router.test_executor import L, S, make_ask, targets

PROMPT = prompt_id(make_ask().request)
MAP = Calibration(
    task="open_question",
    model_id="small",
    prompt_id=PROMPT,
    signals=frozenset({Signal.LOGPROB}),
    scores=(0.0, 1.0),
    values=(0.0, 1.0),
)
JUDGED = Thresholds(
    tasks={"open_question": TaskJudging(judged=True)}, calibrations=(MAP,), hedging=("not sure",)
)
SUBJECT = Subject("open_question", "", "small", PROMPT)


def said(text: str, mean_logprob: float | None = None) -> list[ModelEvent]:
    *pieces, done = answer(text, "small")
    assert isinstance(done, Done)
    return [*pieces, replace(done, mean_logprob=mean_logprob)]


async def run(
    models: dict[Target, ScriptedTarget], thresholds: Thresholds = JUDGED
) -> tuple[Reply, Trail, CollectingSink]:
    """A request whose edge is down, so that L2 is the first to answer."""
    ask = make_ask()
    policy = SHIPPED.model_copy(update={"thresholds": thresholds})
    facts = make_facts(expires_at=ask.budget.expires_at)
    plan = decide(facts, policy, ask.budget.received_at)
    trail, sink = Trail(), CollectingSink()
    executor = Executor(models, CloudLatency(), Breakers(RouterBreakers()), time.monotonic)
    reply = await executor.run(Errand(ask, facts, policy, plan, sink, trail))
    return reply, trail, sink


def down() -> list[ModelEvent | Exception | float]:
    return [failure(Code.UNAVAILABLE, "EDGE_DOWN")]


async def test_an_answer_that_hedges_goes_on_to_the_large_model() -> None:
    models = targets(
        EDGE=down(), CLOUD_SMALL=said("I am not sure."), CLOUD_LARGE=answer("It is Rome.")
    )
    reply, trail, sink = await run(models)
    assert (reply.level, reply.target, reply.text) == (Level.L3, L, "It is Rome.")
    assert reply.reason is Reason.LOW_CONFIDENCE
    assert sink.text == "It is Rome."
    assert [one.outcome for one in trail.attempts][-2:] == [
        AttemptOutcome.REJECTED,
        AttemptOutcome.ACCEPTED,
    ]
    # What the ledger keeps as the request's score is the edge's, which never answered.
    assert trail.judgement is None


@pytest.mark.parametrize(("mean_logprob", "target"), [(-0.1, S), (-2.0, L)])
async def test_a_score_counts_by_the_map_of_that_model(mean_logprob: float, target: Target) -> None:
    models = targets(
        EDGE=down(), CLOUD_SMALL=said("Rome.", mean_logprob), CLOUD_LARGE=answer("Rome, I say.")
    )
    reply, trail, _ = await run(models)
    assert reply.target is target
    small = trail.attempts[1].judgement
    assert small is not None
    assert small.confidence is not None


@pytest.mark.parametrize("logprob", [None, -9.0])
def test_without_a_map_of_its_own_a_score_says_nothing(logprob: float | None) -> None:
    other = JUDGED.model_copy(
        update={"calibrations": (MAP.model_copy(update={"model_id": "edge"}),)}
    )
    signals = {} if logprob is None else {Signal.LOGPROB: 0.01}
    found = judge_small(other, SUBJECT, Answered(signals))
    assert (found.kept, found.confidence) == (True, None)


async def test_where_nothing_larger_follows_it_is_served_as_it_is() -> None:
    models = targets(EDGE=down(), CLOUD_SMALL=said("I am not sure."))
    ask = make_ask()
    policy = SHIPPED.model_copy(update={"thresholds": JUDGED})
    facts = make_facts(
        expires_at=ask.budget.expires_at, permitted=frozenset({Target.EDGE, Target.CLOUD_SMALL})
    )
    plan = decide(facts, policy, ask.budget.received_at)
    executor = Executor(models, CloudLatency(), Breakers(RouterBreakers()), time.monotonic)
    reply = await executor.run(Errand(ask, facts, policy, plan, CollectingSink(), Trail()))
    assert (reply.level, reply.text) == (Level.L2, "I am not sure.")


async def test_a_task_that_is_not_judged_streams_at_once() -> None:
    models = targets(EDGE=down(), CLOUD_SMALL=said("I am not sure. But it may be Rome."))
    reply, _, sink = await run(models, Thresholds())
    assert reply.target is S
    assert len(sink.shown) > 1


async def test_its_answer_is_the_draft_when_the_large_one_is_gone() -> None:
    """Better a small model's answer, marked, than a canned one."""
    models = targets(
        EDGE=down(),
        CLOUD_SMALL=said("I am not sure."),
        CLOUD_LARGE=[failure(Code.UNAVAILABLE, "GONE")],
    )
    reply, _, _ = await run(models)
    assert (reply.level, reply.text, reply.degraded) == (Level.L4, "I am not sure.", True)
    assert reply.fallback_type is FallbackType.UNAVAILABLE
