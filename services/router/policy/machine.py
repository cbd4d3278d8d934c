"""The attempt state machine: what comes next, given what happened. Pure.

`next_move` is asked, the executor does what it says, and `Progress.after` takes
in how it ended, until the answer is served or only the last resort is left. The
index always rises and nothing recurs, so a request has at most as many attempts
as its plan has entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from services.common.vocabulary import AttemptOutcome, FallbackType, Level, Reason, Target
from services.router.policy.config import Policy
from services.router.policy.facts import Facts
from services.router.policy.plan import Plan, PlannedAttempt

SERVED = frozenset({AttemptOutcome.ACCEPTED, AttemptOutcome.PARTIAL})


@dataclass(frozen=True, slots=True)
class Enter:
    """Run this attempt, for at most `cap_ms`."""

    index: int
    attempt: PlannedAttempt
    cap_ms: float
    eta_ms: float


@dataclass(frozen=True, slots=True)
class Skip:
    """Record this attempt as skipped, and ask again."""

    index: int
    attempt: PlannedAttempt
    cap_ms: float
    eta_ms: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class Served:
    """The answer has been served."""


@dataclass(frozen=True, slots=True)
class LastResort:
    """No attempt is left: L4 answers, for this reason."""

    reason: Reason
    fallback_type: FallbackType


Move = Enter | Skip | Served | LastResort


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a target is expected to need. `ttft_ms` counts where the answer is truncated.

    A target that is not `usable` is no reason to pass another one over.
    """

    ttft_ms: float
    eta_ms: float
    usable: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a request stands in its plan.

    Attributes:
        position: Index of the next attempt.
        failure: How the last attempt that ran ended; None before the first.
        reason: Why it ended so.
        fallback_type: The first reason for which the first target was left.
        hopeless: The edge's answer was so poor that the small cloud model is passed over.
        beside: Index of an attempt that ran beside the first; it does not run again.
    """

    plan: Plan
    position: int = 0
    failure: FallbackType | None = None
    reason: Reason = Reason.DEFAULT
    fallback_type: FallbackType = FallbackType.NONE
    served: bool = False
    hopeless: bool = False
    beside: int | None = None

    def skipped(self, move: Skip) -> Progress:
        """The attempt was not run; what was before still counts as the last failure."""
        first = self.failure is None and self.fallback_type is FallbackType.NONE
        kind = _TYPE_OF_SKIP.get(move.reason, FallbackType.TIMEOUT)
        return replace(
            self,
            position=self._behind(move.index),
            reason=move.reason if self.failure is None else self.reason,
            fallback_type=kind if first else self.fallback_type,
        )

    def _behind(self, index: int) -> int:
        if index == self.beside:
            return self.position
        return index + 2 if index + 1 == self.beside else index + 1

    def after(
        self,
        move: Enter,
        outcome: AttemptOutcome,
        failure: FallbackType,
        reason: Reason,
        *,
        hopeless: bool = False,
    ) -> Progress:
        """The attempt ended with `outcome`; `failure` and `reason` say why if it fell short."""
        if outcome in SERVED:
            return replace(self, position=self._behind(move.index), served=True)
        first = self.fallback_type is FallbackType.NONE
        return replace(
            self,
            position=self._behind(move.index),
            failure=failure,
            reason=reason,
            fallback_type=failure if first else self.fallback_type,
            hopeless=self.hopeless or hopeless,
        )


_TYPE_OF_SKIP: Mapping[Reason, FallbackType] = {
    Reason.LATENCY_PRESSURE: FallbackType.TIMEOUT,
    Reason.BUDGET_EXHAUSTED: FallbackType.TIMEOUT,
    Reason.EDGE_UNAVAILABLE: FallbackType.UNAVAILABLE,
    Reason.BREAKER_OPEN: FallbackType.UNAVAILABLE,
}


def begin(plan: Plan) -> Progress:
    """The state before the first attempt."""
    return Progress(plan, reason=plan.reason, fallback_type=plan.fallback_type)


def next_move(
    progress: Progress, policy: Policy, remaining_ms: float, estimates: Mapping[Target, Estimate]
) -> Move:
    """Says what to do now.

    Caps are computed on entering: fraction × (remaining − reserve); L0 also
    leaves room for the next cloud attempt of the plan, where that could fit at all.
    """
    plan, index = progress.plan, progress.position
    if progress.served:
        return Served()
    usable = remaining_ms - policy.caps.reserve_ms
    if index >= len(plan.attempts):
        return LastResort(_last_reason(progress), _last_type(progress))
    if usable <= 0:
        return LastResort(Reason.BUDGET_EXHAUSTED, _last_type(progress, FallbackType.TIMEOUT))
    attempt = plan.attempts[index]
    cap_ms = cap_for(plan, index, usable, estimates)
    estimate = estimates[attempt.target]
    eta_ms = estimate.ttft_ms if attempt.truncated else estimate.eta_ms
    if progress.failure is not None and progress.failure not in attempt.after:
        return Skip(index, attempt, cap_ms, eta_ms, progress.reason)
    if progress.hopeless and attempt.level is Level.L2 and _large_follows(plan, index):
        return Skip(index, attempt, cap_ms, eta_ms, progress.reason)
    if eta_ms > cap_ms and _another_fits(plan, index, usable, estimates):
        return Skip(index, attempt, cap_ms, eta_ms, Reason.LATENCY_PRESSURE)
    if estimate.ttft_ms > usable:
        return Skip(index, attempt, cap_ms, eta_ms, Reason.LATENCY_PRESSURE)
    return Enter(index, attempt, cap_ms, eta_ms)


def beside(
    progress: Progress, policy: Policy, remaining_ms: float, estimates: Mapping[Target, Estimate]
) -> Enter | None:
    """The edge's attempt that runs at once with the first; None where only the first runs."""
    plan = progress.plan
    if not plan.shadow_best or plan.shadow is None or progress.position > 0:
        return None
    usable, estimate = remaining_ms - policy.caps.reserve_ms, estimates[plan.shadow]
    if not estimate.usable or estimate.ttft_ms > usable:
        return None
    for index, attempt in enumerate(plan.attempts):
        if attempt.target is plan.shadow:
            return Enter(index, attempt, usable, estimate.eta_ms)
    return None


def estimates_of(facts: Facts, expected_output_tokens: int) -> dict[Target, Estimate]:
    """What each target is expected to need, from the facts of the decision."""
    edge = facts.edge
    eta_ms = edge.eta_ms(expected_output_tokens)
    estimates = {Target.EDGE: Estimate(edge.ttft_ms, eta_ms, edge.usable)}
    for target, tier in facts.cloud.items():
        # The share of a cloud tier's ETA that passes before its first token is not known yet.
        estimates[target] = Estimate(0.0, tier.eta_ms, tier.usable)
    return estimates


def cap_for(
    plan: Plan, index: int, usable_ms: float, estimates: Mapping[Target, Estimate]
) -> float:
    """Milliseconds that the attempt may take before its commit point.

    A cap leaves room for what may follow; behind the last attempt there is only the reserve.
    """
    if index == len(plan.attempts) - 1:
        return usable_ms
    attempt = plan.attempts[index]
    cap_ms = attempt.cap_fraction * usable_ms
    if attempt.level is not Level.L0:
        return cap_ms
    clouds = [a.target for a in plan.attempts[index + 1 :] if a.target is not Target.EDGE]
    if not clouds:
        return cap_ms
    room_ms = usable_ms - estimates[clouds[0]].eta_ms
    return min(cap_ms, room_ms) if room_ms > 0 else cap_ms


def _large_follows(plan: Plan, index: int) -> bool:
    return any(later.level is Level.L3 for later in plan.attempts[index + 1 :])


def _another_fits(
    plan: Plan, index: int, usable_ms: float, estimates: Mapping[Target, Estimate]
) -> bool:
    """A later attempt could still make a whole answer."""
    return any(
        estimates[later.target].usable
        and estimates[later.target].eta_ms <= later.cap_fraction * usable_ms
        for later in plan.attempts[index + 1 :]
    )


def _last_reason(progress: Progress) -> Reason:
    if not progress.plan.attempts:
        return progress.plan.reason
    return progress.reason


def _last_type(
    progress: Progress, otherwise: FallbackType = FallbackType.UNAVAILABLE
) -> FallbackType:
    if progress.fallback_type is not FallbackType.NONE:
        return progress.fallback_type
    return otherwise
