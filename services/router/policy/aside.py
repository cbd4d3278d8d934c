"""What runs after a reply, off the caller's time: comparisons and better answers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from services.common.vocabulary import Level, Reason, Target
from services.router.policy.config import Policy
from services.router.policy.facts import CLOUD, Facts
from services.router.policy.plan import Plan, PlannedAttempt

_LEVELS = {Target.EDGE: Level.L0, Target.CLOUD_SMALL: Level.L2, Target.CLOUD_LARGE: Level.L3}


def shadow_plan(
    facts: Facts, policy: Policy, plan: Plan, served: Target, drawn: float
) -> Plan | None:
    """The plan of the other side's run; None where nothing is to be compared.

    Private requests are never run twice, and a target that the tenant may not use is not
    asked aside either.

    Args:
        served: Where the reply came from.
        drawn: Random, 0 to 1; below the policy's share the request is compared.
    """
    if facts.screening.has_pii or facts.keep_on_edge or served not in _LEVELS:
        return None
    beside = plan.shadow is not None and not plan.shadow_best  # which ran it in the request's time
    if not beside and drawn >= policy.shadow.share:
        return None
    other = Target.CLOUD_LARGE if served is Target.EDGE else Target.EDGE
    if other not in facts.permitted:
        return None
    return only(plan, [other])


def probe_targets(
    facts: Facts, policy: Policy, plan: Plan, served: Target, granted_ms: float
) -> tuple[Target, ...]:
    """Targets too slow for this request that should be asked aside, so that they can recover.

    A target that is left for its estimate gets no traffic, and so no better estimate. Only one
    that was measured slower than the policy assumes: to a short budget all are slow.

    Args:
        granted_ms: The request's budget at its receipt.
    """
    if policy.latency.probe_every_s <= 0 or facts.screening.has_pii or facts.keep_on_edge:
        return ()
    usable_ms = granted_ms - policy.caps.reserve_ms
    tokens, prior = plan.expected_output_tokens, policy.latency
    edge_prior_ms = prior.edge_ttft_prior_ms + tokens * prior.edge_tpot_prior_ms
    bounds = {
        Target.EDGE: max(edge_prior_ms, prior.edge_share * granted_ms),
        Target.CLOUD_SMALL: max(prior.cloud_small_prior_ms, usable_ms),
        Target.CLOUD_LARGE: max(prior.cloud_large_prior_ms, usable_ms),
    }
    etas = {target: tier.eta_ms for target, tier in facts.cloud.items() if tier.usable}
    if facts.edge.usable:
        etas[Target.EDGE] = facts.edge.eta_ms(tokens)
    others = (target for target in _LEVELS if target in facts.permitted - {served})
    return tuple(target for target in others if etas.get(target, 0.0) > bounds[target])


def only(plan: Plan, targets: Sequence[Target]) -> Plan:
    """A plan of these targets alone."""
    attempts = tuple(
        PlannedAttempt(_LEVELS[target], target, Reason.DEFAULT, cap_fraction=1.0)
        for target in targets
    )
    return replace(plan, attempts=attempts, reason=Reason.DEFAULT, shadow=None)


def late_plan(facts: Facts, policy: Policy, plan: Plan, level: Level) -> Plan | None:
    """The plan of a better answer after a last-resort reply; None where none may be made."""
    if not policy.late.enabled or level is not Level.L4 or facts.keep_on_edge:
        return None
    if facts.pin_pii and facts.screening.has_pii:
        return None
    clouds = [t for t in (Target.CLOUD_SMALL, Target.CLOUD_LARGE) if t in facts.permitted & CLOUD]
    return only(plan, clouds) if clouds else None
