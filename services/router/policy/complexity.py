"""Step 5: how hard the conversation is, and what follows. Pure.

P(strong model needed) inside, 1–10 outside. Score = max(current, mean of the session's last
three, current included): a hard conversation does not turn easy by one short turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from services.common.vocabulary import Reason, Target
from services.router.policy.config import ComplexityPolicy, Policy
from services.router.policy.draft import Draft
from services.router.policy.facts import Facts

_WINDOW = 3
_LOWEST, _HIGHEST = 1.0, 10.0
Side = Literal["low", "grey", "high"]


def score_of(probability: float) -> float:
    """1 to 10 from a probability."""
    return _LOWEST + (_HIGHEST - _LOWEST) * min(1.0, max(0.0, probability))


def smoothed(current: float, recent: tuple[float, ...]) -> float:
    """The larger of the current score and the mean of the last three, itself included."""
    window = (*recent, current)[-_WINDOW:]
    return max(current, sum(window) / len(window))


@dataclass(frozen=True, slots=True)
class Judged:
    """A score and where it falls; `sticky` where only the session's last target decided."""

    score: float
    side: Side
    sticky: bool = False


def judged(score: float, last: Target | None, policy: ComplexityPolicy) -> Judged:
    """The side of a score; a session leaves its last target only past the hysteresis."""
    plain = _side(score, policy.low, policy.high)
    if last is None:
        return Judged(score, plain)
    if last is Target.EDGE:
        kept = score < policy.low + policy.hysteresis
        return Judged(score, "low" if kept else plain, kept and plain != "low")
    kept = score >= policy.high - policy.hysteresis
    return Judged(score, "high" if kept else plain, kept and plain != "high")


def complexity(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Nominates by the strategy in force; a part that failed means the strong-enough model."""
    rule = policy.complexity
    if rule.strategy == "rules" or draft.target is not None:
        return draft.passed("complexity", {"strategy": rule.strategy})
    if rule.strategy == "similarity":
        return _by_similarity(facts, policy, draft)
    probability = facts.complexity.probability
    if probability is None:
        return _degraded(draft, "classifier")
    session = facts.session
    current = score_of(probability) + _edge_record(facts, rule)
    current = min(_HIGHEST, max(_LOWEST, current))
    found = judged(smoothed(current, session.scores), session.target, rule)
    scored = draft.scored(current, found.score)
    seen: dict[str, object] = {
        "value": round(found.score, 2),
        "threshold": f"{rule.low}, {rule.high}, hysteresis {rule.hysteresis}",
        "probability": round(probability, 3),
        "current": round(current, 2),
        "recent": ",".join(f"{score:.1f}" for score in session.scores) or "none",
        "last_target": session.target or "none",
        "edge_pass_rate": facts.complexity.edge_pass_rate,
    }
    return _nominate(facts, policy, scored, found, seen)


def _edge_record(facts: Facts, rule: ComplexityPolicy) -> float:
    """Points added where the edge's answers to this task are refused more often than usual."""
    rate = facts.complexity.edge_pass_rate
    return 0.0 if rate is None else rule.pass_rate_points * (rule.usual_pass_rate - rate)


def _nominate(
    facts: Facts, policy: Policy, draft: Draft, found: Judged, seen: dict[str, object]
) -> Draft:
    rule = policy.complexity
    if rule.routing == "cascade" and _time_for_two(facts, policy, draft):
        return draft.nominated("complexity", Target.EDGE, Reason.GREY_CASCADE, seen=seen)
    if found.side == "grey":
        return _grey(facts, policy, draft, found.score, seen)
    if found.side == "low":
        reason = Reason.SESSION_STICKY if found.sticky else Reason.COMPLEXITY_LOW
        return draft.nominated("complexity", Target.EDGE, reason, seen=seen)
    reason = Reason.SESSION_STICKY if found.sticky else Reason.COMPLEXITY_HIGH
    last = facts.session.target
    target = last if found.sticky and last is not None else _cloud_for(found.score, rule)
    return draft.nominated("complexity", target, reason, seen=seen)


def _grey(
    facts: Facts, policy: Policy, draft: Draft, score: float, seen: dict[str, object]
) -> Draft:
    rule = policy.complexity
    mode = rule.grey_mode if rule.routing == "both" else "predictive"
    if mode == "second_signal":
        second = _nearest(facts, rule)
        seen["second_signal"] = second or "undecided"
        if second is not None:
            return draft.nominated("complexity", second, Reason.SECOND_SIGNAL, seen=seen)
        mode = "cascade"
    if mode == "cascade" and not _time_for_two(facts, policy, draft):
        mode = "predictive"
    seen["grey_mode"] = mode
    if mode == "cascade":
        return draft.nominated("complexity", Target.EDGE, Reason.GREY_CASCADE, seen=seen)
    if mode in ("shadow_cloud", "shadow_best"):
        grey = draft.nominated("complexity", Target.CLOUD_SMALL, Reason.GREY_SHADOW, seen=seen)
        return grey.shadowed(Target.EDGE, best=mode == "shadow_best")
    if score < (rule.low + rule.high) / 2:
        return draft.nominated("complexity", Target.EDGE, Reason.COMPLEXITY_LOW, seen=seen)
    return draft.nominated("complexity", Target.CLOUD_SMALL, Reason.COMPLEXITY_HIGH, seen=seen)


def _by_similarity(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    rule, found = policy.complexity, facts.complexity
    if found.simple is None or found.complex is None:
        return _degraded(draft, "examples")
    seen: dict[str, object] = {
        "value": f"simple {found.simple:.3f}, complex {found.complex:.3f}",
        "threshold": f"at least {rule.similarity_floor}, {rule.similarity_margin} apart",
    }
    target = _nearest(facts, rule)
    if target is None:
        return draft.passed("complexity", seen)
    return draft.nominated("complexity", target, Reason.SIMILARITY, seen=seen)


def _nearest(facts: Facts, rule: ComplexityPolicy) -> Target | None:
    """Target of the nearest examples; None where they are far, or as near as the others."""
    simple, hard = facts.complexity.simple, facts.complexity.complex
    if simple is None or hard is None or max(simple, hard) < rule.similarity_floor:
        return None
    if abs(simple - hard) < rule.similarity_margin:
        return None
    return Target.EDGE if simple > hard else Target.CLOUD_LARGE


def _degraded(draft: Draft, missing: str) -> Draft:
    """Never a silent guess: the strong-enough model, and the reason says so."""
    seen = {"missing": missing}
    return draft.nominated("complexity", Target.CLOUD_LARGE, Reason.ROUTER_DEGRADED, seen=seen)


def _time_for_two(facts: Facts, policy: Policy, draft: Draft) -> bool:
    """Step 6: a cascade only where edge and cloud fit one after the other."""
    prior = policy.capability(facts.task_type).expected_output_tokens
    edge_ms = facts.edge.eta_ms(facts.expected_output_tokens(prior))
    clouds = [tier.eta_ms for target, tier in facts.cloud.items() if target in draft.permitted]
    return edge_ms + min(clouds, default=0.0) <= draft.remaining_ms - policy.caps.reserve_ms


def _cloud_for(score: float, rule: ComplexityPolicy) -> Target:
    return Target.CLOUD_LARGE if score >= rule.large_from else Target.CLOUD_SMALL


def _side(score: float, low: float, high: float) -> Side:
    if score < low:
        return "low"
    return "high" if score >= high else "grey"
