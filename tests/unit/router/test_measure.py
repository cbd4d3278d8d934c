"""What is counted of requests: the fallback rate's two sides, sessions, money."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint

from services.common.telemetry import names
from services.common.vocabulary import AttemptOutcome, FallbackType, Level, Reason, Target
from services.router import measure
from services.router.execute.trail import AttemptRecord, Reply, Trail
from services.router.state.session_tally import SessionTally
from services.router.state.sessions import SessionKey
from tandem.common.v1 import chat_pb2
from tests.unit.router.test_executor import make_ask

EDGE = AttemptRecord(
    0, Level.L0, Target.EDGE, Reason.DEFAULT, AttemptOutcome.REJECTED, cap_ms=1, eta_ms=1
)
CLOUD = replace(
    EDGE,
    index=1,
    level=Level.L2,
    target=Target.CLOUD_SMALL,
    outcome=AttemptOutcome.ACCEPTED,
    usage=chat_pb2.Usage(input_tokens=30, output_tokens=4, cost_micro_usd=70),
)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    meter = provider.get_meter("test")
    for attribute, name in {
        "_entered": names.EDGE_ENTERED,
        "_fallbacks": names.FALLBACKS,
        "_sessions": names.SESSIONS,
        "_session_calls": names.SESSION_CLOUD_CALLS,
        "_cost": names.REQUEST_COST,
    }.items():
        monkeypatch.setattr(measure, attribute, meter.create_counter(name))
    yield reader
    provider.shutdown()


def points(reader: InMemoryMetricReader, name: str) -> list[tuple[dict[str, Any], float]]:
    data = reader.get_metrics_data()
    assert data is not None
    return [
        (dict(point.attributes or {}), point.value)
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == name
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint)
    ]


def reply(fallback: FallbackType, target: Target = Target.CLOUD_SMALL) -> Reply:
    stop = chat_pb2.FINISH_REASON_STOP
    return Reply(Level.L2, target, Reason.VALIDATION_FAILED, fallback, "text", stop)


def take(*attempts: AttemptRecord, fallback: FallbackType = FallbackType.NONE) -> None:
    ask = make_ask()
    trail = Trail(attempts=list(attempts), reply=reply(fallback), ended="ANSWERED")
    measure.Measure().request(ask, trail, ask.budget.received_at)


def test_only_what_entered_the_edge_counts_for_its_fallbacks(reader: InMemoryMetricReader) -> None:
    take(EDGE, CLOUD, fallback=FallbackType.QUALITY)
    take(replace(EDGE, outcome=AttemptOutcome.ACCEPTED))
    take(CLOUD, fallback=FallbackType.UNAVAILABLE)
    skipped = replace(EDGE, outcome=AttemptOutcome.SKIPPED)
    take(skipped, CLOUD, fallback=FallbackType.TIMEOUT)
    take(EDGE, CLOUD, fallback=FallbackType.CAPABILITY)
    assert [value for _, value in points(reader, names.EDGE_ENTERED)] == [3]
    ((labels, value),) = points(reader, names.FALLBACKS)
    assert (labels[names.FALLBACK_TYPE], value) == ("QUALITY", 1)


def test_money_is_counted_by_who_was_asked(reader: InMemoryMetricReader) -> None:
    take(EDGE, CLOUD)
    assert ({names.TARGET: "CLOUD_SMALL"}, 70) in points(reader, names.REQUEST_COST)
    assert ({names.TARGET: "EDGE"}, 0) in points(reader, names.REQUEST_COST)


def test_cloud_calls_of_sessions(reader: InMemoryMetricReader) -> None:
    counts = measure.Measure()
    for session in ("a", "a", "b", ""):
        ask = replace(make_ask(), session_id=session)
        counts.request(ask, Trail(attempts=[EDGE, CLOUD]), ask.budget.received_at)
    assert [value for _, value in points(reader, names.SESSIONS)] == [2]
    assert [value for _, value in points(reader, names.SESSION_CLOUD_CALLS)] == [3]


def test_a_session_begins_again_after_long_silence_and_few_are_kept() -> None:
    tally = SessionTally(max_sessions=2, max_age_s=10.0)
    a, b, c = (SessionKey("acme", name) for name in "abc")
    assert [tally.begins(a, 0.0), tally.begins(a, 9.0), tally.begins(a, 20.0)] == [
        True,
        False,
        True,
    ]
    assert not tally.begins(a, 21.0)
    tally.begins(b, 22.0)
    tally.begins(c, 23.0)
    assert tally.begins(a, 24.0)
