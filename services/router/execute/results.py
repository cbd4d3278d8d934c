"""What an attempt's end means for reply, ledger, breaker and span."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode

from services.common.breaker import Permit
from services.common.telemetry import names
from services.common.vocabulary import AttemptOutcome, FallbackType, Level, Reason, Target
from services.router.execute.attempt import Ended
from services.router.execute.trail import AttemptRecord, Reply
from services.router.policy import machine
from tandem.common.v1 import chat_pb2

_DEGRADED_NOTICE = "A stronger model was wanted and could not be reached."
_PARTIAL_NOTICE = "The answer ends early: its source failed or time ran out."


def reply_of(move: machine.Enter, ended: Ended, progress: machine.Progress) -> Reply:
    """The reply of an attempt that served."""
    attempt, partial = move.attempt, ended.outcome is AttemptOutcome.PARTIAL
    # The rule that put the serving target there: the plan's own, or what drove us to it.
    reason = attempt.reason if move.index == 0 else progress.reason
    fallback = progress.fallback_type
    if partial and fallback is FallbackType.NONE:
        fallback = ended.failure
    cut = attempt.truncated and ended.finish_reason == chat_pb2.FINISH_REASON_LENGTH
    # The edge served where something stronger was wanted first, or on a shortened prompt.
    degraded = attempt.level is Level.L1 or (
        attempt.target is Target.EDGE and progress.fallback_type is not FallbackType.NONE
    )
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


def skipped_record(move: machine.Skip) -> AttemptRecord:
    """The record of an attempt that was not run."""
    return AttemptRecord(
        move.index,
        move.attempt.level,
        move.attempt.target,
        move.reason,
        AttemptOutcome.SKIPPED,
        move.cap_ms,
        move.eta_ms,
    )


def refused_by_breaker(move: machine.Enter) -> machine.Skip:
    """The attempt stands behind an open breaker."""
    return machine.Skip(move.index, move.attempt, move.cap_ms, move.eta_ms, Reason.BREAKER_OPEN)


def ran_record(move: machine.Enter, ended: Ended, duration_ms: float) -> AttemptRecord:
    """The record of an attempt that ran."""
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
        judgement=ended.judgement,
    )


def tell_breaker(permit: Permit, move: machine.Enter, ended: Ended, now: float) -> None:
    """Bad requests, callers that left, and caps below what the target needs never count."""
    too_short = ended.failure is FallbackType.TIMEOUT and move.cap_ms < move.eta_ms
    if ended.outcome is AttemptOutcome.CANCELLED or ended.request_at_fault or too_short:
        permit.dropped()
    elif ended.failure in (FallbackType.UNAVAILABLE, FallbackType.TIMEOUT):
        permit.failed(now)
    else:
        permit.succeeded(now)


def describe(span: trace.Span, ended: Ended) -> None:
    """Puts the end of an attempt on its span."""
    span.set_attribute(names.OUTCOME, ended.outcome)
    if ended.error_reason:
        span.set_attribute(names.ERROR_REASON, ended.error_reason)
    if ended.outcome is not AttemptOutcome.ACCEPTED:
        span.set_status(Status(StatusCode.ERROR, ended.outcome))
