"""From a nominated target to the ordered list of attempts (design, section 3)."""

from __future__ import annotations

from services.common.vocabulary import FallbackType, Level, Reason, Target
from services.router.policy.config import Policy
from services.router.policy.draft import Draft
from services.router.policy.facts import Facts
from services.router.policy.plan import PlannedAttempt

_AFTER_QUALITY = frozenset({FallbackType.QUALITY})
_AFTER_FAILURE = frozenset({FallbackType.TIMEOUT, FallbackType.UNAVAILABLE})


def attempts_for(facts: Facts, policy: Policy, draft: Draft) -> tuple[PlannedAttempt, ...]:
    """The chain behind the nominated target; nothing outside `draft.permitted` is in it."""
    if draft.target is None or draft.target not in draft.permitted:
        return ()
    if draft.target is Target.EDGE:
        chain = [*_edge_first(facts, policy, draft), *_cloud(policy, draft, Target.CLOUD_SMALL)]
    else:
        chain = [
            *_cloud(policy, draft, draft.target),
            *_quick_edge(policy, draft),
            *_small_after_large(policy, draft),
        ]
    return tuple(attempt for attempt in chain if attempt.target in draft.permitted)


def _edge_first(facts: Facts, policy: Policy, draft: Draft) -> list[PlannedAttempt]:
    first = PlannedAttempt(
        Level.L0, Target.EDGE, draft.reason, policy.caps.l0, truncated=draft.truncated
    )
    crowded = facts.features.input_tokens > (
        policy.degrade_context_share * facts.edge.context_tokens
    )
    if not (facts.features.few_shot_tokens or crowded):
        return [first]
    # Only here can a shorter prompt make the same model do better.
    second = PlannedAttempt(
        Level.L1, Target.EDGE, Reason.LOW_CONFIDENCE, policy.caps.l1, _AFTER_QUALITY
    )
    return [first, second]


def _cloud(policy: Policy, draft: Draft, start: Target) -> list[PlannedAttempt]:
    reason = draft.reason if draft.target == start else Reason.DEFAULT
    small = PlannedAttempt(Level.L2, Target.CLOUD_SMALL, reason, policy.caps.l2)
    large = PlannedAttempt(
        Level.L3,
        Target.CLOUD_LARGE,
        reason if start is Target.CLOUD_LARGE else Reason.DEFAULT,
        policy.caps.l3,
    )
    return [large] if start is Target.CLOUD_LARGE else [small, large]


def _quick_edge(policy: Policy, draft: Draft) -> list[PlannedAttempt]:
    """One edge attempt after a cloud-first plan, where the policy wants it."""
    if policy.on_large_timeout != "quick_edge" and draft.shadow is not Target.EDGE:
        return []
    reason = draft.reason if draft.shadow_best else Reason.UPSTREAM_FAILED
    return [PlannedAttempt(Level.L0, Target.EDGE, reason, policy.caps.l0, _AFTER_FAILURE)]


def _small_after_large(policy: Policy, draft: Draft) -> list[PlannedAttempt]:
    """The tier that is left once the large model and the quick edge fell short.

    Without it a dead edge, or one that the large model's long estimate led to, would end in
    the last resort while the small model is well.
    """
    if draft.target is not Target.CLOUD_LARGE or policy.on_large_timeout != "quick_edge":
        return []
    return [
        PlannedAttempt(
            Level.L2,
            Target.CLOUD_SMALL,
            Reason.UPSTREAM_FAILED,
            policy.caps.l2,
            _AFTER_FAILURE,
        )
    ]
