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
    if plan.shadow is None and drawn >= policy.shadow.share:
        return None
    other = Target.CLOUD_LARGE if served is Target.EDGE else Target.EDGE
    if other not in facts.permitted:
        return None
    return _only(plan, [other])


def late_plan(facts: Facts, policy: Policy, plan: Plan, level: Level) -> Plan | None:
    """The plan of a better answer after a last-resort reply; None where none may be made."""
    if not policy.late.enabled or level is not Level.L4 or facts.keep_on_edge:
        return None
    if facts.pin_pii and facts.screening.has_pii:
        return None
    clouds = [t for t in (Target.CLOUD_SMALL, Target.CLOUD_LARGE) if t in facts.permitted & CLOUD]
    return _only(plan, clouds) if clouds else None


def _only(plan: Plan, targets: Sequence[Target]) -> Plan:
    attempts = tuple(
        PlannedAttempt(_LEVELS[target], target, Reason.DEFAULT, cap_fraction=1.0)
        for target in targets
    )
    return replace(plan, attempts=attempts, reason=Reason.DEFAULT, shadow=None)
