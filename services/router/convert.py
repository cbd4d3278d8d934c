"""From our data to protobuf messages."""

from __future__ import annotations

from services.common.vocabulary import FallbackType, Level, Reason, Target
from services.router.ask import Ask
from services.router.execute.trail import AttemptRecord, Reply, Trail
from services.router.policy.config import Policy
from services.router.policy.facts import Facts
from services.router.policy.machine import cap_for, estimates_of
from services.router.policy.plan import Evidence, Plan
from tandem.common.v1 import chat_pb2, decision_pb2
from tandem.router.v1 import router_pb2


def decision(
    level: Level,
    target: Target,
    reason: Reason,
    fallback_type: FallbackType,
    task_type: str,
    policy_version: str,
    complexity: float | None,
) -> decision_pb2.Decision:
    """A decision; names of the vocabulary are those of the proto enums less their prefix."""
    return decision_pb2.Decision(
        level=decision_pb2.Level.Value(f"LEVEL_{level}"),
        target=decision_pb2.Target.Value(f"TARGET_{target}"),
        reason=decision_pb2.Reason.Value(f"REASON_{reason}"),
        fallback_type=decision_pb2.FallbackType.Value(f"FALLBACK_TYPE_{fallback_type}"),
        task_type=task_type,
        policy_version=policy_version,
        complexity=complexity or 0.0,
    )


def planned_decision(plan: Plan, policy_version: str) -> decision_pb2.Decision:
    """The decision of the first attempt; L4 where the plan has none."""
    first = plan.first
    return decision(
        first.level if first else Level.L4,
        first.target if first else Target.FALLBACK,
        plan.reason,
        plan.fallback_type,
        plan.task_type,
        policy_version,
        plan.score,
    )


def trailer(reply: Reply) -> str:
    """The `tandem-decision` trailer."""
    return (
        f"level={reply.level};target={reply.target};reason={reply.reason};"
        f"fallback_type={reply.fallback_type}"
    )


def outcome(
    ask: Ask, reply: Reply, trail: Trail, policy_version: str, now: float
) -> router_pb2.Outcome:
    """How a request was answered."""
    return router_pb2.Outcome(
        decision=decision(
            reply.level,
            reply.target,
            reply.reason,
            reply.fallback_type,
            ask.task_type,
            policy_version,
            trail.plan.score if trail.plan else None,
        ),
        attempts=[_attempt(record) for record in trail.attempts],
        finish_reason=reply.finish_reason,
        usage=trail.usage(),
        timings=_timings(ask, trail, now),
        model_id=reply.model_id,
        degraded=reply.degraded,
        partial=reply.partial,
        notice=reply.notice,
        options=reply.options,
        standin=reply.standin,
    )


def decide_response(
    plan: Plan, facts: Facts, policy: Policy, policy_version: str, now: float
) -> router_pb2.DecideResponse:
    """The plan with the evidence of each step."""
    return router_pb2.DecideResponse(
        decision=planned_decision(plan, policy_version),
        plan=_planned(plan, facts, policy, now),
        steps=[_evidence(step) for step in plan.steps],
    )


def _planned(
    plan: Plan, facts: Facts, policy: Policy, now: float
) -> list[router_pb2.PlannedAttempt]:
    estimates = estimates_of(facts, plan.expected_output_tokens)
    usable = max(0.0, facts.remaining_ms(now) - policy.caps.reserve_ms)
    return [
        router_pb2.PlannedAttempt(
            level=decision_pb2.Level.Value(f"LEVEL_{attempt.level}"),
            target=decision_pb2.Target.Value(f"TARGET_{attempt.target}"),
            reason=decision_pb2.Reason.Value(f"REASON_{attempt.reason}"),
            cap_fraction=attempt.cap_fraction,
            cap_ms=round(cap_for(plan, index, usable, estimates)),
        )
        for index, attempt in enumerate(plan.attempts)
    ]


def _evidence(step: Evidence) -> router_pb2.StepEvidence:
    reason = f"REASON_{step.reason}" if step.reason else "REASON_UNSPECIFIED"
    return router_pb2.StepEvidence(
        step=step.step,
        inputs=dict(step.inputs),
        value=step.value,
        threshold=step.threshold,
        verdict=step.verdict,
        reason=decision_pb2.Reason.Value(reason),
    )


def _attempt(record: AttemptRecord) -> decision_pb2.Attempt:
    return decision_pb2.Attempt(
        index=record.index,
        level=decision_pb2.Level.Value(f"LEVEL_{record.level}"),
        target=decision_pb2.Target.Value(f"TARGET_{record.target}"),
        reason=decision_pb2.Reason.Value(f"REASON_{record.reason}"),
        outcome=decision_pb2.AttemptOutcome.Value(f"ATTEMPT_OUTCOME_{record.outcome}"),
        cap_ms=round(record.cap_ms),
        eta_ms=round(record.eta_ms),
        duration_ms=round(record.duration_ms),
        model_id=record.model_id,
        error_reason=record.error_reason,
        input_tokens=record.usage.input_tokens,
        output_tokens=record.usage.output_tokens,
        cost_micro_usd=record.usage.cost_micro_usd,
    )


def _timings(ask: Ask, trail: Trail, now: float) -> chat_pb2.Timings:
    first = trail.first_text_at if trail.first_text_at is not None else now
    return chat_pb2.Timings(ttft_ms=ask.budget.spent_ms(first), total_ms=ask.budget.spent_ms(now))
