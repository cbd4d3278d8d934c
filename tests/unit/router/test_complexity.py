"""Complexity, sessions and grey modes: each reason that they can give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.vocabulary import Reason, Target
from services.router.policy.complexity import judged, score_of, smoothed
from services.router.policy.decide import decide, needs_score
from services.router.policy.facts import (
    ComplexityFacts,
    Facts,
    Screening,
    SessionFacts,
    TextFeatures,
)
from services.router.policy.plan import Plan
from tests.unit.router.builders import SHIPPED, make_facts, with_complexity

E, S, L = Target.EDGE, Target.CLOUD_SMALL, Target.CLOUD_LARGE
# Too long to be trivial, and nothing else to say of it.
PLAIN = TextFeatures(input_chars=900, input_tokens=230)
LOW, GREY, HIGH, HIGHEST = 0.1, 0.55, 0.7, 0.95


def facts(probability: float | None = None, **changes: Any) -> Facts:
    values = {"features": PLAIN, "complexity": ComplexityFacts(probability), **changes}
    return make_facts(**values)


def near(simple: float | None, hard: float | None, probability: float | None = None) -> Facts:
    return facts(complexity=ComplexityFacts(probability, simple, hard))


def bound(target: Target | None, *scores: float) -> SessionFacts:
    return SessionFacts(scores, target)


CASES: dict[str, tuple[Facts, dict[str, Any], Reason, Target]] = {
    "easy": (facts(LOW), {}, Reason.COMPLEXITY_LOW, E),
    "hard": (facts(HIGH), {}, Reason.COMPLEXITY_HIGH, S),
    "hardest": (facts(HIGHEST), {}, Reason.COMPLEXITY_HIGH, L),
    "no classifier": (facts(None), {}, Reason.ROUTER_DEGRADED, L),
    "rules alone": (facts(None), {"strategy": "rules"}, Reason.DEFAULT, S),
    "grey, cascade": (facts(GREY), {}, Reason.GREY_CASCADE, E),
    "grey, no time for two": (facts(GREY, expires_at=2.0), {}, Reason.COMPLEXITY_LOW, E),
    "grey, the cloud answers": (
        facts(GREY),
        {"grey_mode": "shadow_cloud"},
        Reason.GREY_SHADOW,
        S,
    ),
    "grey, the better": (facts(GREY), {"grey_mode": "shadow_best"}, Reason.GREY_SHADOW, S),
    "grey, examples say easy": (
        near(0.9, 0.2, GREY),
        {"grey_mode": "second_signal"},
        Reason.SECOND_SIGNAL,
        E,
    ),
    "grey, examples say hard": (
        near(0.2, 0.9, GREY),
        {"grey_mode": "second_signal"},
        Reason.SECOND_SIGNAL,
        L,
    ),
    "grey, examples do not know": (
        near(0.2, 0.2, GREY),
        {"grey_mode": "second_signal"},
        Reason.GREY_CASCADE,
        E,
    ),
    "grey under the middle, predictive": (
        facts(0.53),
        {"routing": "predictive"},
        Reason.COMPLEXITY_LOW,
        E,
    ),
    "grey over the middle, predictive": (
        facts(0.6),
        {"routing": "predictive"},
        Reason.COMPLEXITY_HIGH,
        S,
    ),
    "cascade asks the edge first": (
        facts(HIGHEST),
        {"routing": "cascade"},
        Reason.GREY_CASCADE,
        E,
    ),
    "near an easy example": (near(0.8, 0.3), {"strategy": "similarity"}, Reason.SIMILARITY, E),
    "near a hard example": (near(0.3, 0.8), {"strategy": "similarity"}, Reason.SIMILARITY, L),
    "near none": (near(0.3, 0.2), {"strategy": "similarity"}, Reason.DEFAULT, S),
    "no examples": (near(None, 0.8), {"strategy": "similarity"}, Reason.ROUTER_DEGRADED, L),
    "a hard conversation stays hard": (
        facts(LOW, session=bound(L, 9.0, 9.0)),
        {},
        Reason.SESSION_STICKY,
        L,
    ),
    "a little under the bound stays in the cloud": (
        facts(0.58, session=bound(S, 7.1)),
        {},
        Reason.SESSION_STICKY,
        S,
    ),
    "a little over the bound stays at the edge": (
        facts(0.5, session=bound(E, 4.8)),
        {},
        Reason.SESSION_STICKY,
        E,
    ),
    "far over the bound leaves the edge": (
        facts(HIGHEST, session=bound(E, 2.0)),
        {},
        Reason.COMPLEXITY_HIGH,
        L,
    ),
    "yes, do it": (
        facts(LOW, features=TextFeatures(60, 20, follows_up=True), session=bound(L)),
        {},
        Reason.SESSION_STICKY,
        L,
    ),
    "the edge fails at this task": (
        facts(complexity=ComplexityFacts(0.43, edge_pass_rate=0.0)),
        {"grey_mode": "shadow_cloud"},
        Reason.GREY_SHADOW,
        S,
    ),
    "a short turn of a hard conversation is not trivial": (
        facts(LOW, features=TextFeatures(30, 13), session=bound(None, 9.0)),
        {},
        Reason.GREY_CASCADE,
        E,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_table(name: str) -> None:
    given_facts, changes, reason, target = CASES[name]
    plan = decide(given_facts, with_complexity(**changes), 0.0)
    assert (plan.reason, plan.attempts[0].target) == (reason, target)


def shadow(mode: str, **changes: Any) -> Plan:
    return decide(facts(GREY, **changes), with_complexity(grey_mode=mode), 0.0)


def test_the_shadow_stands_in_the_plan_and_serves_when_the_cloud_fails() -> None:
    plan = shadow("shadow_cloud")
    assert (plan.shadow, plan.shadow_best) == (E, False)
    assert [attempt.target for attempt in plan.attempts] == [S, L, E]
    assert shadow("shadow_best").shadow_best


def test_a_pinned_or_cloud_only_request_has_no_shadow() -> None:
    assert shadow("shadow_cloud", screening=Screening(("PHONE",))).shadow is None
    assert shadow("shadow_cloud", permitted=frozenset({S, L})).shadow is None


def test_models_are_asked_only_where_no_rule_speaks() -> None:
    assert needs_score(facts(), SHIPPED, 0.0)
    assert not needs_score(facts(), with_complexity(strategy="rules"), 0.0)
    for spoken in (
        {"features": TextFeatures(30, 13)},
        {"screening": Screening(("PHONE",))},
        {"features": replace(PLAIN, wants_live=True)},
        {"task_type": "long_summary"},
    ):
        assert not needs_score(facts(**spoken), SHIPPED, 0.0)


def test_the_plan_tells_both_scores() -> None:
    plan = decide(facts(LOW, session=bound(L, 9.0, 9.0)), SHIPPED, 0.0)
    assert plan.current_score == pytest.approx(1.9)
    assert plan.score == pytest.approx((9 + 9 + 1.9) / 3)


@given(probability=st.floats(0, 1), recent=st.lists(st.floats(1, 10), max_size=2).map(tuple))
def test_scores_stay_between_one_and_ten(probability: float, recent: tuple[float, ...]) -> None:
    score = smoothed(score_of(probability), recent)
    assert score_of(probability) <= score <= 10.0


@given(
    first=st.floats(1, 10),
    wobble=st.lists(st.floats(-0.49, 0.49), min_size=3, max_size=3),
)
def test_near_equal_questions_do_not_flip(first: float, wobble: list[float]) -> None:
    """Three scores within half a point: the second and third go where the first went."""
    rule = SHIPPED.complexity
    start = judged(first, None, rule)
    if start.side == "grey":
        return
    target = E if start.side == "low" else S
    for step in wobble:
        assert judged(first + step, target, rule).side == start.side
