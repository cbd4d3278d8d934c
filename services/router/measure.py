"""What is counted of a request; docs/metrics.md tells each metric and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from opentelemetry import metrics

from services.common.telemetry import names
from services.common.vocabulary import AttemptOutcome, FallbackType, Target
from services.router.ask import Ask
from services.router.execute.trail import AttemptRecord, Trail
from services.router.policy.facts import CLOUD
from services.router.state.session_tally import SessionTally
from services.router.state.sessions import SessionKey

_meter = metrics.get_meter("tandem.router")
_requests = _meter.create_counter(names.REQUESTS, description="Requests by how they ended")
_duration = _meter.create_histogram(
    names.REQUEST_DURATION, unit="ms", description="Receipt to the end, by who answered"
)
_cost = _meter.create_counter(
    names.REQUEST_COST, unit="{micro_usd}", description="Money spent, by who was asked"
)
_tokens = _meter.create_counter(
    names.REQUEST_TOKENS, unit="{token}", description="Tokens of prompts and answers"
)
_attempts = _meter.create_counter(names.ATTEMPTS, description="Attempts by level and outcome")
_entered = _meter.create_counter(
    names.EDGE_ENTERED, description="Requests that the edge was asked, by task"
)
_fallbacks = _meter.create_counter(
    names.FALLBACKS, description="Requests that the edge was asked and fell back, by type and task"
)
_sessions = _meter.create_counter(names.SESSIONS, description="Sessions begun")
_session_calls = _meter.create_counter(
    names.SESSION_CLOUD_CALLS, description="Cloud attempts for requests of a session"
)
_overrun = _meter.create_histogram(
    names.DEADLINE_OVERRUN,
    unit="ms",
    description="Time past the deadline, 0 where kept",
    explicit_bucket_boundaries_advisory=names.OVERRUN_BUCKETS_MS,
)
_ttft = _meter.create_histogram(names.TTFT, unit="ms", description="Time to the first shown text")
_agreement = _meter.create_histogram(
    names.SHADOW_AGREEMENT,
    description="How far edge and cloud agree in shadow runs, 0 to 1",
    explicit_bucket_boundaries_advisory=names.SHARE_BUCKETS,
)
# Capability is admission: such a request never was the edge's.
_NO_FALLBACK = (FallbackType.NONE, FallbackType.CAPABILITY)


@dataclass(frozen=True, slots=True)
class Measure:
    """Counts requests; its labels are enums, and tasks of the policy."""

    sessions: SessionTally = field(default_factory=SessionTally)

    def shadow(self, task_type: str, agreement: float) -> None:
        """One comparison of both sides' answers."""
        _agreement.record(agreement, {names.TASK_TYPE: task_type})

    def request(self, ask: Ask, trail: Trail, now: float) -> None:
        """One request, when it has ended in any way; `now` is monotonic seconds."""
        reply = trail.reply
        target = reply.target if reply else ""
        _requests.add(
            1,
            {
                names.OUTCOME: trail.ended,
                names.LEVEL: reply.level if reply else "",
                names.TARGET: target,
                names.REASON: reply.reason if reply else "",
                names.FALLBACK_TYPE: reply.fallback_type if reply else "",
            },
        )
        _duration.record(ask.budget.spent_ms(now), {names.TARGET: target})
        _overrun.record(max(0.0, (now - ask.budget.expires_at) * 1000.0))
        ran = [one for one in trail.attempts if one.outcome is not AttemptOutcome.SKIPPED]
        _edge(ask, trail, ran)
        self._session(ask, ran, now)
        for record in trail.attempts:
            _attempt(record)

    def _session(self, ask: Ask, ran: list[AttemptRecord], now: float) -> None:
        if not ask.session_id:
            return
        key = SessionKey(ask.tenant.name, ask.session_id)
        _sessions.add(int(self.sessions.begins(key, now)))
        _session_calls.add(sum(record.target in CLOUD for record in ran))


def first_text(ask: Ask, target: Target, at: float) -> None:
    """The first text was shown at `at`, monotonic seconds."""
    _ttft.record(ask.budget.spent_ms(at), {names.TARGET: target})


def _edge(ask: Ask, trail: Trail, ran: list[AttemptRecord]) -> None:
    """The fallback rate, whose denominator is what entered the edge and not all requests."""
    if all(record.target is not Target.EDGE for record in ran):
        return
    task = {names.TASK_TYPE: ask.task_type}
    _entered.add(1, task)
    if trail.reply is not None and trail.reply.fallback_type not in _NO_FALLBACK:
        _fallbacks.add(1, {**task, names.FALLBACK_TYPE: trail.reply.fallback_type})


def _attempt(record: AttemptRecord) -> None:
    target, usage = {names.TARGET: record.target}, record.usage
    _attempts.add(1, {**target, names.LEVEL: record.level, names.OUTCOME: record.outcome})
    _cost.add(usage.cost_micro_usd, target)
    _tokens.add(usage.input_tokens, {**target, names.TOKEN_TYPE: "input"})
    _tokens.add(usage.output_tokens, {**target, names.TOKEN_TYPE: "output"})
