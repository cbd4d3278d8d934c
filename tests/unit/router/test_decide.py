"""The decision as a table, and what must hold whatever the facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.vocabulary import FallbackType, Level, Reason, Target
from services.router.policy.config import Policy
from services.router.policy.decide import decide
from services.router.policy.facts import (
    MODELS,
    CloudFacts,
    ComplexityFacts,
    EdgeFacts,
    Facts,
    Screening,
    SessionFacts,
    TextFeatures,
)
from tests.unit.router.builders import SHIPPED, make_facts, with_complexity

E, S, L = Target.EDGE, Target.CLOUD_SMALL, Target.CLOUD_LARGE
SHORT = TextFeatures(input_chars=30, input_tokens=13)
LONG = TextFeatures(input_chars=4_000, input_tokens=1_000)
DOWN = EdgeFacts(up=False, context_tokens=8_192, ttft_ms=120.0, tpot_ms=10.0)
SLOW = EdgeFacts(up=True, context_tokens=8_192, ttft_ms=9_000.0, tpot_ms=200.0)
OPEN_LARGE = {S: CloudFacts(1_500.0), L: CloudFacts(2_500.0, breaker_open=True)}
OPEN_BOTH = {S: CloudFacts(1_500.0, breaker_open=True), L: CloudFacts(2_500.0, breaker_open=True)}
CASES: dict[str, tuple[dict[str, Any], Reason, FallbackType, list[Target]]] = {
    "short and plain stays": ({}, Reason.TRIVIAL_RULE, FallbackType.NONE, [E, S, L]),
    "pii is pinned": (
        {"screening": Screening(("PHONE",))},
        Reason.PII_PIN,
        FallbackType.NONE,
        [E],
    ),
    "a failed detector pins": (
        {"screening": Screening(failed=True), "pin_pii": False},
        Reason.PII_PIN,
        FallbackType.NONE,
        [E],
    ),
    "pii may go where the tenant allows it": (
        {"screening": Screening(("PHONE",)), "pin_pii": False},
        Reason.TRIVIAL_RULE,
        FallbackType.NONE,
        [E, S, L],
    ),
    "the caller keeps it here": ({"keep_on_edge": True}, Reason.PII_PIN, FallbackType.NONE, [E]),
    "pii wins over a hard rule": (
        {"screening": Screening(("PHONE",)), "features": replace(SHORT, computes_amounts=True)},
        Reason.PII_PIN,
        FallbackType.NONE,
        [E],
    ),
    "long summaries leave": (
        {"task_type": "long_summary"},
        Reason.CAPABILITY_MISS,
        FallbackType.CAPABILITY,
        [L, E],
    ),
    "several tools leave": (
        {"tools": ("a", "b")},
        Reason.CAPABILITY_MISS,
        FallbackType.CAPABILITY,
        [L, E],
    ),
    "amounts are computed in the cloud": (
        {"features": replace(SHORT, computes_amounts=True)},
        Reason.HARD_RULE,
        FallbackType.NONE,
        [L, E],
    ),
    "weak retrieval leaves": (
        {"features": replace(SHORT, best_snippet_score=0.3)},
        Reason.HARD_RULE,
        FallbackType.NONE,
        [L, E],
    ),
    "reasoning leaves": (
        {"features": replace(SHORT, asks_reasoning=True)},
        Reason.KEYWORD_RULE,
        FallbackType.NONE,
        [L, E],
    ),
    "an edge keyword stays": (
        {"features": replace(LONG, edge_keyword=True)},
        Reason.KEYWORD_RULE,
        FallbackType.NONE,
        [E, S, L],
    ),
    "no rule speaks and no classifier: the strong model": (
        {"features": LONG},
        Reason.ROUTER_DEGRADED,
        FallbackType.NONE,
        [L, E],
    ),
    "few-shot may be dropped": (
        {"features": replace(SHORT, few_shot_tokens=20)},
        Reason.TRIVIAL_RULE,
        FallbackType.NONE,
        [E, E, S, L],
    ),
    "edge down goes to the cloud": (
        {"edge": DOWN},
        Reason.EDGE_UNAVAILABLE,
        FallbackType.UNAVAILABLE,
        [S, L],
    ),
    "an open edge breaker goes to the cloud": (
        {"edge": replace(make_facts().edge, breaker_open=True)},
        Reason.BREAKER_OPEN,
        FallbackType.UNAVAILABLE,
        [S, L, E],
    ),
    "an open breaker of one tier takes the other": (
        {"cloud": OPEN_LARGE, "features": replace(SHORT, computes_amounts=True)},
        Reason.BREAKER_OPEN,
        FallbackType.UNAVAILABLE,
        [S, L, E],
    ),
    "open breakers of both tiers take the edge": (
        {"cloud": OPEN_BOTH, "features": replace(SHORT, computes_amounts=True)},
        Reason.BREAKER_OPEN,
        FallbackType.UNAVAILABLE,
        [E, S, L],
    ),
    "slow edge goes to the cloud": (
        {"edge": SLOW},
        Reason.LATENCY_PRESSURE,
        FallbackType.TIMEOUT,
        [S, L],
    ),
    "slow edge with a slow cloud is cut": (
        {"expires_at": 0.5},
        Reason.LATENCY_PRESSURE,
        FallbackType.NONE,
        [E, S, L],
    ),
    "a cloud too slow for the budget leaves the edge": (
        {"features": replace(SHORT, computes_amounts=True), "expires_at": 1.2},
        Reason.LATENCY_PRESSURE,
        FallbackType.TIMEOUT,
        [E, S, L],
    ),
    "a tenant without the large model": (
        {"permitted": frozenset({E, S}), "features": replace(SHORT, computes_amounts=True)},
        Reason.TIER_LIMIT,
        FallbackType.NONE,
        [S, E],
    ),
    "a tenant with the cloud only": (
        {"permitted": frozenset({S, L})},
        Reason.TIER_LIMIT,
        FallbackType.NONE,
        [S, L],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_decision_table(name: str) -> None:
    changes, reason, fallback_type, targets = CASES[name]
    facts = make_facts(**changes)
    if not facts.edge.up or facts.edge is SLOW:
        # The edge stays out of the chain behind a cloud-first plan only if it is not permitted;
        # the quick edge attempt is part of the chain and skipped when its turn comes.
        targets = [*targets, E]
    if targets[0] is L and S in facts.permitted:
        # The small model is what is left where the large one and the quick edge fell short.
        targets = [*targets, S]
    plan = decide(facts, SHIPPED, 0.0)
    assert plan.reason is reason
    assert plan.fallback_type is fallback_type
    assert [attempt.target for attempt in plan.attempts] == targets


def test_pinned_without_a_permitted_edge_has_no_attempt() -> None:
    facts = make_facts(screening=Screening(("PHONE",)), permitted=frozenset({S, L}))
    assert decide(facts, SHIPPED, 0.0).attempts == ()


def test_evidence_names_every_step_and_holds_no_text() -> None:
    plan = decide(make_facts(), SHIPPED, 0.0)
    assert [step.step for step in plan.steps] == [
        "load",
        "privacy",
        "tiers",
        "cost_ceiling",
        "capability",
        "hard_rules",
        "session",
        "trivial",
        "keywords",
        "complexity",
        "default",
        "tier_limit",
        "available",
        "latency",
    ]


features = st.builds(
    TextFeatures,
    input_chars=st.integers(0, 10_000),
    input_tokens=st.integers(0, 10_000),
    few_shot_tokens=st.integers(0, 100),
    asks_reasoning=st.booleans(),
    computes_amounts=st.booleans(),
    wants_live=st.booleans(),
    has_code=st.booleans(),
    cloud_keyword=st.booleans(),
    edge_keyword=st.booleans(),
    best_snippet_score=st.none() | st.floats(0, 1),
    follows_up=st.booleans(),
)
any_facts = st.builds(
    Facts,
    task_type=st.sampled_from([*SHIPPED.capabilities, "unknown"]),
    features=features,
    screening=st.builds(Screening, kinds=st.sampled_from([(), ("PHONE",)]), failed=st.booleans()),
    pin_pii=st.booleans(),
    permitted=st.frozensets(st.sampled_from(sorted(MODELS)), min_size=1),
    edge=st.builds(
        EdgeFacts,
        up=st.booleans(),
        context_tokens=st.integers(1, 8_192),
        ttft_ms=st.floats(0, 20_000),
        tpot_ms=st.floats(0, 500),
        breaker_open=st.booleans(),
    ),
    cloud=st.fixed_dictionaries(
        {
            tier: st.builds(CloudFacts, eta_ms=st.floats(0, 20_000), breaker_open=st.booleans())
            for tier in (S, L)
        }
    ),
    expires_at=st.floats(0, 120),
    ttft_budget_ms=st.floats(1, 5_000),
    max_output_tokens=st.integers(0, 4_096),
    tools=st.sampled_from([(), ("a",), ("a", "b")]),
    keep_on_edge=st.booleans(),
    complexity=st.builds(
        ComplexityFacts,
        probability=st.none() | st.floats(0, 1),
        simple=st.none() | st.floats(-1, 1),
        complex=st.none() | st.floats(-1, 1),
        edge_pass_rate=st.none() | st.floats(0, 1),
    ),
    session=st.builds(
        SessionFacts,
        scores=st.lists(st.floats(1, 10), max_size=2).map(tuple),
        target=st.none() | st.sampled_from(sorted(MODELS)),
    ),
)
policies = st.sampled_from(
    [
        SHIPPED,
        SHIPPED.model_copy(update={"on_large_timeout": "next_level"}),
        SHIPPED.model_copy(update={"on_large_timeout": "edge_draft"}),
        *(
            with_complexity(strategy=strategy, routing=routing, grey_mode=mode)
            for strategy in ("rules", "similarity", "classifier")
            for routing in ("predictive", "cascade", "both")
            for mode in ("shadow_cloud", "shadow_best", "cascade", "second_signal")
        ),
    ]
)


@given(facts=any_facts, policy=policies, now=st.floats(0, 10))
def test_a_pinned_request_never_has_a_cloud_attempt(
    facts: Facts, policy: Policy, now: float
) -> None:
    plan = decide(facts, policy, now)
    pinned = facts.keep_on_edge or facts.screening.failed
    pinned |= facts.pin_pii and bool(facts.screening.kinds)
    targets = {attempt.target for attempt in plan.attempts}
    assert targets <= facts.permitted
    if pinned:
        assert targets | ({plan.shadow} - {None}) <= {E}


@given(facts=any_facts, policy=policies, now=st.floats(0, 10))
def test_levels_rise_save_behind_a_cloud_first_plan(
    facts: Facts, policy: Policy, now: float
) -> None:
    attempts = decide(facts, policy, now).attempts
    levels = [attempt.level for attempt in attempts]
    order = list(Level)
    ranks = [order.index(level) for level in levels]
    if any(ranks[i] <= ranks[i - 1] for i in range(1, len(ranks))):
        assert policy.on_large_timeout == "quick_edge"
        assert levels in (
            [Level.L3, Level.L0],
            [Level.L3, Level.L0, Level.L2],
            [Level.L3, Level.L2],
            [Level.L2, Level.L3, Level.L0],
            [Level.L2, Level.L0],
        )
    assert len({attempt.target for attempt in attempts}) >= len(attempts) - 1
    assert sum(attempt.level is Level.L1 for attempt in attempts) <= 1


@given(facts=any_facts, policy=policies, now=st.floats(0, 10))
def test_the_same_facts_give_the_same_plan(facts: Facts, policy: Policy, now: float) -> None:
    assert decide(facts, policy, now) == decide(facts, policy, now)
