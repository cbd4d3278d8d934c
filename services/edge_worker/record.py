"""What is kept of a request: spans, metrics and one log line, never text."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import structlog
from opentelemetry import metrics, trace

from services.common.telemetry import names
from services.edge_worker.engine import StepReport
from services.edge_worker.events import FinishedEvent
from services.edge_worker.job import Job
from services.edge_worker.request import Generation
from services.edge_worker.runtime.base import ModelInfo
from services.edge_worker.scheduler.plan import LaneName

_log = structlog.get_logger()
_OPERATION = "chat"
_PROVIDER = "tandem.edge"
_CANCELLED = "CANCELLED"


class TicketFacts(Protocol):
    """The part of a ticket that is recorded."""

    @property
    def lane(self) -> LaneName: ...
    @property
    def input_tokens(self) -> int: ...
    @property
    def received_at(self) -> float: ...
    @property
    def queued_at(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a request ended.

    Attributes:
        name: A finish reason, an error's reason, or `CANCELLED`.
        finished: The last event, where the answer is whole.
    """

    name: str
    finished: FinishedEvent | None = None

    @classmethod
    def cancelled(cls) -> Outcome:
        """The caller left, or its deadline passed."""
        return cls(_CANCELLED)

    @classmethod
    def refused(cls, reason: str) -> Outcome:
        """An error of ours."""
        return cls(reason)

    @classmethod
    def of(cls, finished: FinishedEvent) -> Outcome:
        """A whole answer."""
        return cls(finished.reason.value, finished)


class Recorder:
    """Writes records; on the event loop only."""

    def __init__(self, info: ModelInfo) -> None:
        meter = metrics.get_meter("tandem.edge")
        self._info = info
        self._tracer = trace.get_tracer("tandem.edge")
        self._requests = meter.create_counter(
            names.EDGE_REQUESTS, unit="{request}", description="Requests by lane and outcome"
        )
        self._rows = meter.create_histogram(
            names.EDGE_STEP_ROWS,
            unit="{row}",
            description="Rows of a decode step",
            explicit_bucket_boundaries_advisory=names.ROWS_BUCKETS,
        )
        self._ttft = meter.create_histogram(
            names.EDGE_TTFT, unit="ms", description="Receipt to first token"
        )
        self._tpot = meter.create_histogram(
            names.EDGE_TPOT,
            unit="ms",
            description="Time from one token of an answer to the next, its mean",
            explicit_bucket_boundaries_advisory=names.TPOT_BUCKETS_MS,
        )
        self._tokens = meter.create_histogram(
            names.EDGE_TOKENS, unit="{token}", description="Tokens of prompts and answers"
        )

    def step(self, report: StepReport) -> None:
        """One call of the runtime."""
        if report.decode_rows:
            self._rows.record(report.decode_rows, {names.LANE: report.lane.value})

    def classified(
        self, lane: LaneName, outcome: str, input_tokens: int, rows: int, total_ms: float
    ) -> None:
        """One `Classify`, when it has ended in any way; `rows` are paths of labels read."""
        self._requests.add(1, {names.LANE: lane.value, names.OUTCOME: outcome})
        _log.info(
            "classify",
            lane=lane.value,
            outcome=outcome,
            input_tokens=input_tokens,
            rows=rows,
            total_ms=round(total_ms, 1),
        )

    def record(self, request: Generation, ticket: TicketFacts, job: Job, outcome: Outcome) -> None:
        """One request, when it has ended in any way."""
        now = time.monotonic()
        self._measure(ticket, job, outcome, now)
        self._trace(ticket, job, now)
        self._annotate(request, ticket, job, outcome)
        _log.info(
            "generate",
            routed_request_id=request.request_id,
            tenant=request.tenant,
            lane=ticket.lane.value,
            outcome=outcome.name,
            input_tokens=ticket.input_tokens,
            output_tokens=job.output_tokens,
            queue_ms=_ms(ticket.queued_at, job.started_at or now),
            ttft_ms=_ms(ticket.received_at, job.first_token_at),
            total_ms=_ms(ticket.received_at, now),
        )

    def _measure(self, ticket: TicketFacts, job: Job, outcome: Outcome, now: float) -> None:
        lane = {names.LANE: ticket.lane.value}
        self._requests.add(1, {**lane, names.OUTCOME: outcome.name})
        if job.first_token_at is not None:
            self._ttft.record((job.first_token_at - ticket.received_at) * 1000.0, lane)
            if job.output_tokens > 1 and outcome.finished is not None:
                decode_ms = (now - job.first_token_at) * 1000.0
                self._tpot.record(decode_ms / (job.output_tokens - 1), lane)
        if job.started_at is not None:
            self._tokens.record(ticket.input_tokens, {**lane, names.TOKEN_TYPE: "input"})
            self._tokens.record(job.output_tokens, {**lane, names.TOKEN_TYPE: "output"})

    def _trace(self, ticket: TicketFacts, job: Job, now: float) -> None:
        started, first = job.started_at, job.first_token_at
        self._span(names.SPAN_EDGE_QUEUE, ticket.queued_at, started or now, ticket)
        if started is not None:
            self._span(names.SPAN_EDGE_PREFILL, started, first or now, ticket)
        if first is not None:
            self._span(names.SPAN_EDGE_DECODE, first, now, ticket)

    def _span(self, name: str, start: float, end: float, ticket: TicketFacts) -> None:
        """A span after the fact: the engine's thread never touches OpenTelemetry."""
        epoch = time.time() - time.monotonic()
        span = self._tracer.start_span(
            name,
            start_time=int((epoch + start) * 1e9),
            attributes={names.LANE: ticket.lane.value},
        )
        span.end(end_time=int((epoch + max(start, end)) * 1e9))

    def _annotate(
        self, request: Generation, ticket: TicketFacts, job: Job, outcome: Outcome
    ) -> None:
        trace.get_current_span().set_attributes(
            {
                names.TENANT: request.tenant,
                names.LANE: ticket.lane.value,
                names.OUTCOME: outcome.name,
                names.GEN_AI_OPERATION: _OPERATION,
                names.GEN_AI_PROVIDER: _PROVIDER,
                names.GEN_AI_REQUEST_MODEL: self._info.name,
                names.GEN_AI_RESPONSE_MODEL: self._info.model_id,
                names.GEN_AI_INPUT_TOKENS: ticket.input_tokens,
                names.GEN_AI_OUTPUT_TOKENS: job.output_tokens,
            }
        )


def _ms(start: float, end: float | None) -> float | None:
    return None if end is None else round((end - start) * 1000.0, 1)
