"""Walks a plan: asks the state machine, runs attempts, and serves the reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode

from services.common.breaker import Permit
from services.common.telemetry import names
from services.common.vocabulary import (
    AttemptOutcome,
    FallbackType,
    Level,
    Reason,
    StreamMode,
    Target,
)
from services.router.ask import Ask
from services.router.execute.attempt import AttemptRun, Ended, release_for
from services.router.execute.last_resort import last_resort
from services.router.execute.sink import Sink
from services.router.execute.trail import AttemptRecord, Reply, Trail
from services.router.policy import machine
from services.router.policy.config import Policy
from services.router.policy.facts import Facts
from services.router.policy.plan import Plan
from services.router.state.breakers import Breakers
from services.router.state.cloud_latency import CloudLatency
from services.router.targets.base import Job, ModelTarget
from tandem.common.v1 import chat_pb2

_tracer = trace.get_tracer("tandem.router")
_DEGRADED_NOTICE = "A stronger model was wanted and could not be reached."
_PARTIAL_NOTICE = "The answer ends early: its source failed or time ran out."


@dataclass(frozen=True, slots=True)
class Executor:
    """Runs plans against the model targets."""

    models: Mapping[Target, ModelTarget]
    cloud_latency: CloudLatency
    breakers: Breakers
    clock: Callable[[], float]

    async def run(
        self, ask: Ask, facts: Facts, policy: Policy, plan: Plan, sink: Sink, trail: Trail
    ) -> Reply:
        """Tries the plan's attempts in order until one serves; L4 always does."""
        progress = machine.begin(plan)
        estimates = machine.estimates_of(facts, plan.expected_output_tokens)
        while True:
            remaining = ask.budget.remaining_ms(self.clock())
            move = machine.next_move(progress, policy, remaining, estimates)
            if isinstance(move, machine.Skip):
                trail.attempts.append(_skipped(move))
                progress = progress.skipped(move)
            elif isinstance(move, machine.Enter):
                permit = self.breakers.admit(move.attempt.target, self.clock())
                if permit is None:
                    skip = _refused_by_breaker(move)
                    trail.attempts.append(_skipped(skip))
                    progress = progress.skipped(skip)
                    continue
                ended = await self._attempt(move, permit, ask, facts, policy, plan, sink, trail)
                progress = progress.after(move, ended.outcome, ended.failure, ended.reason)
                if progress.served:
                    return _reply(move, ended, progress)
                await _withdraw(plan, progress, ended, sink, trail)
            elif isinstance(move, machine.LastResort):
                reply = last_resort(ask.request, policy, trail, move.reason, move.fallback_type)
                await sink.chunk(reply.text, Target.FALLBACK, committed=True)
                return reply

    async def _attempt(
        self,
        move: machine.Enter,
        permit: Permit,
        ask: Ask,
        facts: Facts,
        policy: Policy,
        plan: Plan,
        sink: Sink,
        trail: Trail,
    ) -> Ended:
        target, started = move.attempt.target, self.clock()
        final_ms = max(move.cap_ms, ask.budget.remaining_ms(started) - policy.caps.reserve_ms)
        release = release_for(ask.mode, policy.commit_tokens, judged=not ask.free_text)
        limit_ms = move.cap_ms if release.mode is StreamMode.HOLD else final_ms
        job = _job(move, ask, facts, policy, plan, limit_ms)
        run = AttemptRun(target, self.models[target], job, release, sink, self.clock)
        ended = Ended(AttemptOutcome.CANCELLED, FallbackType.NONE, Reason.DEFAULT)
        with _span(move) as span:
            try:
                ended = await run.run(move.cap_ms, final_ms)
            finally:
                duration_ms = (self.clock() - started) * 1000.0
                trail.first_text_at = trail.first_text_at or run.first_text_at
                trail.attempts.append(_ran(move, ended, duration_ms))
                _tell_breaker(permit, move, ended, self.clock())
                _describe(span, ended)
        self._learn(target, ended, duration_ms)
        return ended

    def _learn(self, target: Target, ended: Ended, duration_ms: float) -> None:
        if target is not Target.EDGE and ended.outcome is AttemptOutcome.ACCEPTED:
            self.cloud_latency.took(target, duration_ms, self.clock())


def _job(
    move: machine.Enter, ask: Ask, facts: Facts, policy: Policy, plan: Plan, limit_ms: float
) -> Job:
    tokens = ask.request.max_output_tokens or policy.default_max_output_tokens
    if move.attempt.truncated:
        edge = facts.edge
        tokens = min(tokens, max(1, int((move.cap_ms - edge.ttft_ms) / max(edge.tpot_ms, 0.1))))
    size = facts.features.input_tokens + plan.expected_output_tokens
    return Job(
        ask=ask,
        level=move.attempt.level,
        limit_ms=limit_ms,
        max_output_tokens=tokens,
        context_tokens=int(policy.degrade_context_share * facts.edge.context_tokens),
        simple_lane=size <= policy.latency.simple_lane_max_tokens,
    )


def _reply(move: machine.Enter, ended: Ended, progress: machine.Progress) -> Reply:
    attempt, partial = move.attempt, ended.outcome is AttemptOutcome.PARTIAL
    # The rule that put the serving target there: the plan's own, or what drove us to it.
    reason = attempt.reason if move.index == 0 else progress.reason
    fallback = progress.fallback_type
    if partial and fallback is FallbackType.NONE:
        fallback = ended.failure
    cut = attempt.truncated and ended.finish_reason == chat_pb2.FINISH_REASON_LENGTH
    degraded = attempt.level is Level.L1 or (attempt.target is Target.EDGE and move.index > 0)
    notice = _PARTIAL_NOTICE if partial or cut else _DEGRADED_NOTICE if degraded else ""
    return Reply(
        level=attempt.level,
        target=attempt.target,
        reason=reason,
        fallback_type=fallback,
        text=ended.text,
        finish_reason=ended.finish_reason,
        tool_calls=ended.tool_calls,
        model_id=ended.model_id,
        standin=ended.standin,
        degraded=degraded,
        partial=partial or cut,
        notice=notice,
    )


async def _withdraw(
    plan: Plan, progress: machine.Progress, ended: Ended, sink: Sink, trail: Trail
) -> None:
    """The attempt fell short: keeps its text as a draft, and takes back what was shown."""
    if ended.text and not trail.draft:
        trail.draft, trail.draft_model_id = ended.text, ended.model_id
    if trail.first_text_at is not None:
        rest = plan.attempts[progress.position :]
        await sink.superseded(ended.reason, rest[0].target if rest else Target.FALLBACK)
        trail.first_text_at = None


def _refused_by_breaker(move: machine.Enter) -> machine.Skip:
    return machine.Skip(move.index, move.attempt, move.cap_ms, move.eta_ms, Reason.BREAKER_OPEN)


def _tell_breaker(permit: Permit, move: machine.Enter, ended: Ended, now: float) -> None:
    """Bad requests, callers that left, and caps below what the target needs never count."""
    too_short = ended.failure is FallbackType.TIMEOUT and move.cap_ms < move.eta_ms
    if ended.outcome is AttemptOutcome.CANCELLED or ended.request_at_fault or too_short:
        permit.dropped()
    elif ended.failure in (FallbackType.UNAVAILABLE, FallbackType.TIMEOUT):
        permit.failed(now)
    else:
        permit.succeeded(now)


def _skipped(move: machine.Skip) -> AttemptRecord:
    return AttemptRecord(
        move.index,
        move.attempt.level,
        move.attempt.target,
        move.reason,
        AttemptOutcome.SKIPPED,
        move.cap_ms,
        move.eta_ms,
    )


def _ran(move: machine.Enter, ended: Ended, duration_ms: float) -> AttemptRecord:
    return AttemptRecord(
        index=move.index,
        level=move.attempt.level,
        target=move.attempt.target,
        reason=move.attempt.reason,
        outcome=ended.outcome,
        cap_ms=move.cap_ms,
        eta_ms=move.eta_ms,
        duration_ms=duration_ms,
        model_id=ended.model_id,
        error_reason=ended.error_reason,
        usage=ended.usage,
    )


def _span(move: machine.Enter) -> AbstractContextManager[trace.Span]:
    return _tracer.start_as_current_span(
        f"{names.SPAN_ATTEMPT} {move.attempt.level}",
        attributes={
            names.LEVEL: move.attempt.level,
            names.TARGET: move.attempt.target,
            names.REASON: move.attempt.reason,
            names.CAP_MS: round(move.cap_ms),
        },
        record_exception=False,
        set_status_on_exception=False,
    )


def _describe(span: trace.Span, ended: Ended) -> None:
    span.set_attribute(names.OUTCOME, ended.outcome)
    if ended.error_reason:
        span.set_attribute(names.ERROR_REASON, ended.error_reason)
    if ended.outcome is not AttemptOutcome.ACCEPTED:
        span.set_status(Status(StatusCode.ERROR, ended.outcome))
