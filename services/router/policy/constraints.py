"""Step 1: what must not happen. Only removes targets."""

from __future__ import annotations

from services.common.vocabulary import Reason, Target
from services.router.policy.config import Policy
from services.router.policy.draft import Draft
from services.router.policy.facts import Facts

EDGE_ONLY = frozenset({Target.EDGE})


def privacy(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Pins private requests to the edge; a failed detector counts as private."""
    screening = facts.screening
    pinned = facts.keep_on_edge or (screening.has_pii and facts.pin_pii) or screening.failed
    inputs: dict[str, object] = {
        "kinds": ",".join(screening.kinds) or "none",
        "detector_failed": screening.failed,
        "rule": "pin" if facts.pin_pii else "allow",
        "keep_on_edge": facts.keep_on_edge,
    }
    if not pinned:
        return draft.passed("privacy", seen=inputs)
    pinned_draft = draft.restricted("privacy", EDGE_ONLY, Reason.PII_PIN, seen=inputs)
    return pinned_draft.nominated("privacy_pin", Target.EDGE, Reason.PII_PIN)


def tiers(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Removes what tenant, channel or caller do not permit."""
    names = ",".join(sorted(facts.permitted))
    if draft.permitted <= facts.permitted:
        return draft.passed("tiers", {"permitted": names})
    return draft.restricted("tiers", facts.permitted, Reason.TIER_LIMIT, {"permitted": names})


def load(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Under overload a call of low priority gets no model: the last resort answers at once."""
    if not facts.shed:
        return draft.passed("load")
    shed = draft.restricted("load", frozenset(), Reason.LOAD_SHED)
    return shed.nominated("load_shed", Target.EDGE, Reason.LOAD_SHED)


def cost_ceiling(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Lowers the tier as the tenant's money runs out, and leaves the cloud when it has."""
    seen = {"value": round(facts.cost_share, 3), "threshold": policy.lower_from_cost_share}
    if facts.cost_share < policy.lower_from_cost_share:
        return draft.passed("cost_ceiling", seen)
    left = EDGE_ONLY if facts.cost_share >= 1.0 else EDGE_ONLY | {Target.CLOUD_SMALL}
    return draft.restricted("cost_ceiling", left, Reason.COST_CEILING, seen)
