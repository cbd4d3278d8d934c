"""Who sent what kind of thing where: one event for each request that leaves, never a value."""

from __future__ import annotations

import structlog

from services.cloud_proxy.record import TierFacts
from services.cloud_proxy.redaction.gate import Clearance
from services.common.rpc.call import Call

_log = structlog.get_logger()
# So many paths are named; more are only counted.
_NAMED_FIELDS = 32


def audit(call: Call, facts: TierFacts, clearance: Clearance) -> None:
    """Logs the event `egress`; called once, before the first try."""
    finds = clearance.finds
    paths = sorted(finds.fields) if finds else []
    _log.info(
        "egress",
        tenant=call.principal.tenant,
        provider=facts.provider,
        tier=facts.tier.value,
        standin=facts.standin,
        rule=clearance.rule.value,
        screened=finds is not None,
        kinds=dict(sorted(finds.kinds.items())) if finds else {},
        fields={path: sorted(finds.fields[path]) for path in paths[:_NAMED_FIELDS]}
        if finds
        else {},
        more_fields=max(0, len(paths) - _NAMED_FIELDS),
    )
