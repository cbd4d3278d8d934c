"""Records what happened: one ledger row, one log line, metrics and span attributes a request."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

import structlog
from opentelemetry import trace

from services.common.telemetry import names
from services.router.ask import Ask
from services.router.execute.judging import prompt_id
from services.router.execute.trail import AttemptRecord, Reply, Trail
from services.router.ledger.entry import Ledger
from services.router.measure import Measure
from services.router.policy.judge import Judgement

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Recorder:
    """Writes the record of a request; called exactly once, whatever happened."""

    ledger: Ledger
    measure: Measure = field(default_factory=Measure)

    def record(self, ask: Ask, trail: Trail, policy_version: str, now: float) -> None:
        """Never awaits, so that a cancelled call is recorded like any other."""
        row = _row(ask, trail, policy_version, now)
        self.ledger.append(row)
        self.measure.request(ask, trail, now)
        _describe_span(trail, policy_version)
        _log.info(
            "request",
            tenant=ask.tenant.name,
            ended=trail.ended,
            answered_level=row["level"],
            target=row["target"],
            reason=row["reason"],
            fallback_type=row["fallback_type"],
            total_ms=row["total_ms"],
            attempts=len(trail.attempts),
        )

    def aside(
        self, ask: Ask, trail: Trail, version: str, now: float, arm: str, shadow: dict[str, Any]
    ) -> None:
        """The row of a run after the reply, with the request's own id, told apart by `arm`."""
        row = _row(ask, trail, version, now)
        self.ledger.append({**row, "arm": arm, "shadow": shadow or None})
        if shadow:
            self.measure.shadow(ask.task_type, shadow["agreement"])


def _row(ask: Ask, trail: Trail, policy_version: str, now: float) -> dict[str, Any]:
    reply, facts, usage = trail.reply, trail.facts, trail.usage()
    return {
        "request_id": ask.request_id,
        "at": time.time(),
        "tenant": ask.tenant.name,
        "channel": ask.channel,
        "session_hash": _hash(ask.tenant.name, ask.session_id),
        "task_type": ask.task_type,
        "intent": ask.request.intent,
        "ended": trail.ended,
        **_served(reply, trail),
        "attempts": [_attempt(record) for record in trail.attempts],
        "pii_kinds": list(facts.screening.kinds) if facts else [],
        "input_chars": facts.features.input_chars if facts else 0,
        "policy_version": policy_version,
        "arm": ask.arm or None,
        "candidate": trail.candidate,
        "prompt_id": prompt_id(ask.request),
        "complexity": trail.plan.score if trail.plan else None,
        **_judged(trail),
        "model_id": reply.model_id if reply else "",
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_micro_usd": usage.cost_micro_usd,
        "usage_estimated": usage.estimated,
        "budget_ms": ask.budget.deadline_ms,
        "budget_elapsed_before_ms": ask.budget.elapsed_ms,
        "total_ms": round(ask.budget.spent_ms(now), 1),
        "ttft_ms": _since(ask, trail.first_text_at),
        "stage_ms": {key: round(value, 2) for key, value in trail.stage_ms.items()},
        "degraded": bool(reply and reply.degraded),
        "partial": bool(reply and reply.partial),
    }


def _served(reply: Reply | None, trail: Trail) -> dict[str, str]:
    if reply is not None:
        return {
            "level": reply.level,
            "target": reply.target,
            "reason": reply.reason,
            "fallback_type": reply.fallback_type,
        }
    planned = trail.plan.reason if trail.plan else ""
    return {"level": "", "target": "", "reason": planned, "fallback_type": ""}


def _judged(trail: Trail) -> dict[str, Any]:
    judged = trail.judgement
    if judged is None:
        return {}
    validate, second, accept = judged.bands.edges
    return {
        "confidence_raw": judged.raw,
        "confidence": judged.confidence,
        "bands": {
            "validate_from": validate,
            "second_signal_from": second,
            "accept_from": accept,
            "band": judged.band,
            "signals": {name: round(value, 4) for name, value in judged.signals.items()},
        },
    }


def _attempt(record: AttemptRecord) -> dict[str, Any]:
    return {
        "index": record.index,
        "level": record.level,
        "target": record.target,
        "reason": record.reason,
        "outcome": record.outcome,
        "cap_ms": round(record.cap_ms),
        "eta_ms": round(record.eta_ms),
        "ms": round(record.duration_ms, 1),
        "model_id": record.model_id,
        "error_reason": record.error_reason,
        "input_tokens": record.usage.input_tokens,
        "output_tokens": record.usage.output_tokens,
        "cost_micro_usd": record.usage.cost_micro_usd,
        **({"payload_tokens": list(record.payload_tokens)} if record.payload_tokens else {}),
        **_score(record.judgement),
    }


def _score(judged: Judgement | None) -> dict[str, float]:
    """What `tandem calibrate` maps, of the answers of whatever model were judged."""
    if judged is None or judged.raw is None:
        return {}
    sure = {} if judged.confidence is None else {"confidence": judged.confidence}
    return {"confidence_raw": judged.raw, **sure}


def _describe_span(trail: Trail, policy_version: str) -> None:
    span = trace.get_current_span()
    span.set_attribute(names.POLICY_VERSION, policy_version)
    span.set_attribute(names.OUTCOME, trail.ended)
    if trail.plan:
        span.set_attribute(names.TASK_TYPE, trail.plan.task_type)
    if trail.reply:
        span.set_attributes(
            {
                names.LEVEL: trail.reply.level,
                names.TARGET: trail.reply.target,
                names.REASON: trail.reply.reason,
                names.FALLBACK_TYPE: trail.reply.fallback_type,
            }
        )


def _hash(tenant: str, session_id: str) -> str:
    """Sessions are told apart in the ledger without keeping what the caller named them."""
    if not session_id:
        return ""
    return hashlib.sha256(f"{tenant}\0{session_id}".encode()).hexdigest()[:16]


def _since(ask: Ask, at: float | None) -> float | None:
    return None if at is None else round(ask.budget.spent_ms(at), 1)
