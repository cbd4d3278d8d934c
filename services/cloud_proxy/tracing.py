"""The span and the count of one try at a provider."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from services.cloud_proxy.record import CANCELLED, INTERNAL, OK, Progress, Recorder, TierFacts
from services.common.deadline import Budget
from services.common.errors import (
    DeadlineExceeded,
    TandemError,
    UpstreamCut,
    UpstreamMalformed,
    UpstreamStalled,
)
from services.common.telemetry import names

_tracer = trace.get_tracer("tandem.cloud")
# After these the provider may have worked, and may charge for it.
_MAYBE_BILLED = (UpstreamStalled, UpstreamCut, UpstreamMalformed, DeadlineExceeded)


@contextmanager
def traced_try(
    facts: TierFacts, budget: Budget, progress: Progress, recorder: Recorder
) -> Iterator[None]:
    """Opens `SPAN_UPSTREAM` around one try; cancelled and timed-out tries get an error status.

    No trace context is sent to the provider: ids of ours stay inside.
    """
    with _tracer.start_as_current_span(
        names.SPAN_UPSTREAM,
        kind=SpanKind.CLIENT,
        attributes=_attributes(facts),
        # An exception's text could hold what must not be shown.
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        outcome = INTERNAL
        try:
            yield
            outcome = OK
        except TandemError as error:
            outcome = error.reason
            if isinstance(error, _MAYBE_BILLED):
                progress.doubt(facts.prices.at(time.time()))
            raise
        except asyncio.CancelledError:
            outcome = _why_cancelled(budget)
            progress.doubt(facts.prices.at(time.time()))
            raise
        finally:
            recorder.tried(facts, outcome)
            _describe(span, progress, outcome)


def _why_cancelled(budget: Budget) -> str:
    ended = budget.remaining_ms(time.monotonic()) <= 0
    return DeadlineExceeded.reason if ended else CANCELLED


def _attributes(facts: TierFacts) -> dict[str, str | bool]:
    return {
        names.GEN_AI_OPERATION: "chat",
        names.GEN_AI_PROVIDER: facts.provider,
        names.GEN_AI_REQUEST_MODEL: facts.model,
        names.STANDIN: facts.standin,
    }


def _describe(span: trace.Span, progress: Progress, outcome: str) -> None:
    if progress.model_id:
        span.set_attribute(names.GEN_AI_RESPONSE_MODEL, progress.model_id)
        span.set_attribute(names.GEN_AI_INPUT_TOKENS, progress.tokens.input)
        span.set_attribute(names.GEN_AI_OUTPUT_TOKENS, progress.tokens.output)
    if outcome != OK:
        span.set_attribute(names.ERROR_REASON, outcome)
        span.set_status(Status(StatusCode.ERROR, outcome))
