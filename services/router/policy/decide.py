"""`decide(facts, policy, now) → Plan`: the router's mind, as a pure function."""

from __future__ import annotations

from collections.abc import Callable

from services.router.policy import constraints, gates, rules
from services.router.policy.chain import attempts_for
from services.router.policy.config import Policy
from services.router.policy.draft import Draft
from services.router.policy.facts import MODELS, Facts
from services.router.policy.plan import Plan

Step = Callable[[Facts, Policy, Draft], Draft]

# The order is the design's, section 4: constraints remove, rules nominate, gates reorder.
STEPS: tuple[Step, ...] = (
    constraints.privacy,
    constraints.tiers,
    rules.capability,
    rules.hard_rules,
    rules.trivial,
    rules.keywords,
    rules.default,
    gates.tier_limit,
    gates.available,
    gates.latency,
)


def decide(facts: Facts, policy: Policy, now: float) -> Plan:
    """Decides what to try, in which order, and why.

    The same facts at the same `now` (monotonic seconds) give the same plan, today
    or in a replay.
    """
    draft = Draft(permitted=MODELS, remaining_ms=facts.remaining_ms(now))
    for step in STEPS:
        draft = step(facts, policy, draft)
    usual = policy.capability(facts.task_type).expected_output_tokens
    return Plan(
        attempts=attempts_for(facts, policy, draft),
        reason=draft.reason,
        fallback_type=draft.fallback_type,
        task_type=facts.task_type,
        expected_output_tokens=facts.expected_output_tokens(usual),
        steps=draft.steps,
    )
