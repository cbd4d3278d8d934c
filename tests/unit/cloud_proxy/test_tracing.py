"""Spans of tries: names, figures, and a status for what did not go well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import services.cloud_proxy.tracing as tracing
from services.cloud_proxy.policy.cost import Tokens
from services.cloud_proxy.record import Progress, Recorder
from services.common.deadline import Budget
from services.common.errors import UpstreamCut
from services.common.telemetry import names
from tests.unit.cloud_proxy.test_upstream import FACTS


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("test"))
    yield exporter
    provider.shutdown()


def traced(
    exporter: InMemorySpanExporter, error: BaseException | None, budget_s: float = 5
) -> tuple[ReadableSpan, Progress]:
    now = time.monotonic()
    progress = Progress(model_id="fake-1b", tokens=Tokens(4, 0, 2))
    try:
        with tracing.traced_try(FACTS, Budget(1, 0, now, now + budget_s), progress, Recorder()):
            if error is not None:
                raise error
    except BaseException as caught:
        assert caught is error
    return exporter.get_finished_spans()[-1], progress


def test_a_good_try(spans: InMemorySpanExporter) -> None:
    span, progress = traced(spans, None)
    assert span.name == names.SPAN_UPSTREAM
    assert dict(span.attributes or {}) == {
        names.GEN_AI_OPERATION: "chat",
        names.GEN_AI_PROVIDER: "fake",
        names.GEN_AI_REQUEST_MODEL: "fake-1",
        names.GEN_AI_RESPONSE_MODEL: "fake-1b",
        names.GEN_AI_INPUT_TOKENS: 4,
        names.GEN_AI_OUTPUT_TOKENS: 2,
        names.STANDIN: False,
    }
    assert span.status.status_code is StatusCode.UNSET
    assert not progress.possibly_billed


@pytest.mark.parametrize(
    ("error", "budget_s", "reason"),
    [
        (UpstreamCut("private text"), 5.0, "UPSTREAM_CUT"),
        (asyncio.CancelledError(), 5.0, "CANCELLED"),
        (asyncio.CancelledError(), 0.0, "DEADLINE_EXCEEDED"),
        (RuntimeError("private text"), 5.0, "INTERNAL"),
    ],
)
def test_a_bad_try_has_an_error_status(
    spans: InMemorySpanExporter, error: BaseException, budget_s: float, reason: str
) -> None:
    span, progress = traced(spans, error, budget_s)
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == reason
    assert (span.attributes or {})[names.ERROR_REASON] == reason
    assert not span.events
    assert "private" not in span.to_json()
    assert progress.possibly_billed == (reason != "INTERNAL")
