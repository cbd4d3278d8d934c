"""`decide(facts, policy, now) → Plan`: the router's mind, as a pure function."""

from __future__ import annotations

from collections.abc import Callable

from services.common.vocabulary import Target
from services.router.policy import complexity, constraints, gates, rules
from services.router.policy.chain import attempts_for
from services.router.policy.config import Policy
from services.router.policy.draft import Draft
from services.router.policy.facts import MODELS, Facts
from services.router.policy.plan import Plan

Step = Callable[[Facts, Policy, Draft], Draft]

# The order is the design's, section 4: constraints remove, rules nominate, gates reorder.
STEPS: tuple[Step, ...] = (
    constraints.load,
    constraints.privacy,
    constraints.tiers,
    constraints.cost_ceiling,
    rules.capability,
    rules.hard_rules,
    rules.session,
    rules.trivial,
    rules.keywords,
    complexity.complexity,
    rules.default,
    gates.tier_limit,
    gates.available,
    gates.latency,
)


def _shadow(draft: Draft) -> Target | None:
    """What runs beside: only where it is permitted, and not once a gate made it the first."""
    fits = draft.shadow in draft.permitted and draft.target is not draft.shadow
    return draft.shadow if fits else None


def needs_score(facts: Facts, policy: Policy, now: float) -> bool:
    """Whether no constraint and no rule speaks, so that the small models must be asked."""
    if policy.complexity.strategy == "rules":
        return False
    draft = Draft(permitted=MODELS, remaining_ms=facts.remaining_ms(now))
    for step in STEPS[: STEPS.index(complexity.complexity)]:
        draft = step(facts, policy, draft)
        if draft.target is not None:
            return False
    return True


def decide(facts: Facts, policy: Policy, now: float) -> Plan:
    """Decides what to try, in which order, and why.

    The same facts at the same `now` (monotonic seconds) give the same plan, today
    or in a replay.
    """
    draft = Draft(permitted=MODELS, remaining_ms=facts.remaining_ms(now))
    for step in STEPS:
        draft = step(facts, policy, draft)
    prior = policy.capability(facts.task_type).expected_output_tokens
    return Plan(
        attempts=attempts_for(facts, policy, draft),
        reason=draft.reason,
        fallback_type=draft.fallback_type,
        task_type=facts.task_type,
        expected_output_tokens=facts.expected_output_tokens(prior),
        steps=draft.steps,
        current_score=draft.current_score,
        score=draft.score,
        shadow=_shadow(draft),
        shadow_best=draft.shadow_best,
    )
