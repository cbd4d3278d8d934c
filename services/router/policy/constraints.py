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
