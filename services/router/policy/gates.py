"""Steps 6 to 8: gates that veto, reorder or degrade what the rules nominated."""

from __future__ import annotations

from services.common.vocabulary import FallbackType, Reason, Target
from services.router.policy.config import Policy
from services.router.policy.draft import Draft
from services.router.policy.facts import CLOUD, Facts

# Cheaper first: what a forbidden or unreachable tier is lowered to, and raised to after that.
_ORDER = (Target.EDGE, Target.CLOUD_SMALL, Target.CLOUD_LARGE)


def available(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Step 7: leaves a target that is down or behind an open breaker, where another is permitted.

    Where none is left the chain is tried all the same: its attempts are cheap to refuse.
    """
    target = draft.target
    if target not in draft.permitted:
        return draft.passed("available")
    cloud_up = _cloud_up(facts, draft)
    inputs: dict[str, object] = {
        "edge_up": facts.edge.up,
        "edge_breaker_open": facts.edge.breaker_open,
        "cloud_up": ",".join(sorted(cloud_up)) or "none",
    }
    if target is Target.EDGE and not facts.edge.usable and cloud_up:
        return draft.moved(
            "available",
            _cheapest(cloud_up),
            Reason.EDGE_UNAVAILABLE if not facts.edge.up else Reason.BREAKER_OPEN,
            fallback_type=FallbackType.UNAVAILABLE,
            seen=inputs,
        )
    if target in CLOUD and target not in cloud_up:
        edge = facts.edge.usable and Target.EDGE in draft.permitted
        others = cloud_up or (frozenset({Target.EDGE}) if edge else frozenset())
        if others:
            # Degraded but up: the other tier first, the edge where there is none.
            return draft.moved(
                "available",
                _cheapest(others),
                Reason.BREAKER_OPEN,
                fallback_type=FallbackType.UNAVAILABLE,
                seen=inputs,
            )
    return draft.passed("available", seen=inputs)


def latency(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Step 6: the edge while it fits, else the cloud if that fits, else what starts in time."""
    if draft.target not in draft.permitted:
        return draft.passed("latency")
    prior = policy.capability(facts.task_type).expected_output_tokens
    tokens = facts.expected_output_tokens(prior)
    usable = draft.remaining_ms - policy.caps.reserve_ms
    edge_eta = facts.edge.eta_ms(tokens)
    inputs: dict[str, object] = {
        "remaining_ms": round(draft.remaining_ms),
        "edge_eta_ms": round(edge_eta),
        "edge_ttft_ms": round(facts.edge.ttft_ms),
        **{f"{name.lower()}_eta_ms": round(tier.eta_ms) for name, tier in facts.cloud.items()},
    }
    if draft.target is Target.EDGE and edge_eta > policy.latency.edge_share * draft.remaining_ms:
        return _leave_slow_edge(facts, draft, usable, inputs)
    if draft.target in CLOUD and facts.cloud[draft.target].eta_ms > usable:
        return _leave_slow_cloud(facts, draft, edge_eta, usable, inputs)
    return draft.passed("latency", seen=inputs)


def tier_limit(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Step 8: a nominated tier that is not permitted is lowered, else raised to one that is."""
    wanted = draft.target or Target.EDGE
    if wanted in draft.permitted:
        return draft.passed("tier_limit")
    # A tier that tenant and caller permit can only be gone because the money is.
    lowered = facts.cost_share >= policy.lower_from_cost_share
    if not draft.permitted:
        # Nothing is left: the last resort answers, and says why unless a constraint has.
        spent = lowered and draft.reason not in (Reason.PII_PIN, Reason.LOAD_SHED)
        return _spent(draft, wanted) if spent else draft.passed("tier_limit")
    reason = Reason.COST_CEILING if lowered and wanted in facts.permitted else Reason.TIER_LIMIT
    rank = _ORDER.index(wanted)
    lower = [t for t in reversed(_ORDER[:rank]) if t in draft.permitted]
    higher = [t for t in _ORDER[rank:] if t in draft.permitted]
    return draft.moved("tier_limit", (lower or higher)[0], reason, seen={"wanted": wanted})


def _spent(draft: Draft, wanted: Target) -> Draft:
    return draft.moved("tier_limit", wanted, Reason.COST_CEILING)


def _leave_slow_edge(facts: Facts, draft: Draft, usable: float, inputs: dict[str, object]) -> Draft:
    in_time = _cloud_in_time(facts, draft, usable, inputs)
    if in_time is not None:
        return in_time
    return draft.moved("latency", Target.EDGE, Reason.LATENCY_PRESSURE, truncated=True, seen=inputs)


def _leave_slow_cloud(
    facts: Facts, draft: Draft, edge_eta: float, usable: float, inputs: dict[str, object]
) -> Draft:
    in_time = _cloud_in_time(facts, draft, usable, inputs)
    if in_time is not None:
        return in_time
    if Target.EDGE in draft.permitted and facts.edge.usable and facts.edge.ttft_ms < usable:
        return draft.moved(
            "latency",
            Target.EDGE,
            Reason.LATENCY_PRESSURE,
            fallback_type=FallbackType.TIMEOUT,
            truncated=edge_eta > usable,
            seen=inputs,
        )
    return draft.passed("latency", seen=inputs)


def _cloud_in_time(
    facts: Facts, draft: Draft, usable: float, inputs: dict[str, object]
) -> Draft | None:
    """Moves to the cheapest cloud tier that fits; None where none does."""
    fitting = frozenset(t for t in _cloud_up(facts, draft) if facts.cloud[t].eta_ms <= usable)
    if not fitting:
        return None
    return draft.moved(
        "latency",
        _cheapest(fitting),
        Reason.LATENCY_PRESSURE,
        fallback_type=FallbackType.TIMEOUT,
        seen=inputs,
    )


def _cloud_up(facts: Facts, draft: Draft) -> frozenset[Target]:
    return frozenset(t for t in CLOUD & draft.permitted if facts.cloud[t].usable)


def _cheapest(targets: frozenset[Target]) -> Target:
    return next(target for target in _ORDER if target in targets)
