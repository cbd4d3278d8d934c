"""Traces of three processes in a real Jaeger, read back through its query API.

`make jaeger` builds it, once, where Go is present; elsewhere these tests are skipped and say so.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandem.router.v1 import router_pb2
from tests.e2e.conftest import BURN
from tests.e2e.harness import PATIENT_MS, Tandem, eventually, question
from tests.tools.jaeger_server import JaegerServer, JaegerSpan, jaeger_binary

ROUTE = "tandem.router.v1.RouterService/RouteStream"
EDGE = "tandem.edge.v1.EdgeWorkerService/Generate"
CLOUD = "tandem.cloud.v1.CloudProxyService/Generate"
# Clocks of one machine, read in three processes.
SLACK_S = 0.005
# The longest that the exporter's batches, sent once a second, may take on a busy machine.
EXPORT_S = 20.0


@pytest.fixture(scope="module")
def jaeger() -> Iterator[JaegerServer]:
    try:
        jaeger_binary()
    except RuntimeError as why:
        pytest.skip(str(why))
    with JaegerServer() as server:
        yield server


@pytest.fixture(scope="module")
def tandem(jaeger: JaegerServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    system = Tandem(
        Path(tmp_path_factory.mktemp("jaeger")),
        {**BURN, "TANDEM_EDGE__TELEMETRY__OTLP_ENDPOINT": jaeger.otlp_address},
        cloud={
            "TANDEM_CLOUD__TELEMETRY__OTLP_ENDPOINT": jaeger.otlp_address,
            "TANDEM_CLOUD__LIMITS__TENANT__REQUESTS_PER_MIN": "1000",
        },
        router={
            "TANDEM_ROUTER__TELEMETRY__OTLP_ENDPOINT": jaeger.otlp_address,
            "TANDEM_ROUTER__CACHE__ENABLED": "true",
        },
    )
    yield system
    system.close()


def call(
    tandem: Tandem, trace_id: str, request: router_pb2.RouteRequest, deadline_ms: int, **used: str
) -> Any:
    return tandem.stub.RouteStream(
        router_pb2.RouteStreamRequest(request=request),
        timeout=deadline_ms / 1000.0,
        metadata=[
            ("deadline_ms", str(deadline_ms)),
            ("traceparent", f"00-{trace_id}-b7ad6b7169203331-01"),
            *used.items(),
        ],
    )


def wait_for(jaeger: JaegerServer, trace_id: str, *wanted: str) -> list[JaegerSpan]:
    """The trace, once it has these spans and no more arrive."""
    eventually(
        lambda: set(wanted) <= {span.name for span in jaeger.spans(trace_id)},
        f"spans {wanted} in Jaeger",
        EXPORT_S,
    )
    before: list[JaegerSpan] = []
    while len(found := jaeger.spans(trace_id)) > len(before):
        before = found
        time.sleep(1.5)
    return found


def lineage(spans: list[JaegerSpan], span: JaegerSpan) -> list[str]:
    """service:name from a span up to the root."""
    by_id = {each.span_id: each for each in spans}
    names = [f"{span.service}:{span.name}"]
    while span.parent_id in by_id:
        span = by_id[span.parent_id]
        names.append(f"{span.service}:{span.name}")
    return names


def the(spans: list[JaegerSpan], name: str, service: str = "") -> JaegerSpan:
    (found,) = (s for s in spans if s.name == name and service in ("", s.service))
    return found


@pytest.fixture(scope="module")
def escalated(tandem: Tandem, jaeger: JaegerServer) -> list[JaegerSpan]:
    """The edge's label is none of the allowed, so that the small cloud tier answers."""
    trace_id = "e" * 32
    request = question("tell me about the zebra [[say:wrong wrong wrong wrong wrong wrong]]")
    request.output.labels.values.extend(["refund", "complaint"])
    tandem.upstream.script({"text": "refund"})
    list(call(tandem, trace_id, request, PATIENT_MS))
    return wait_for(jaeger, trace_id, ROUTE, "tandem.edge.decode", "tandem.proxy.upstream")


def test_every_hop_is_there_under_its_parent(escalated: list[JaegerSpan]) -> None:
    root = f"router:{ROUTE}"
    expected = {
        "tandem.screen": [root],
        "tandem.look": [root],
        "tandem.decide": [root],
        **{
            f"tandem.edge.{stage}": [
                f"edge:{EDGE}",
                f"router:{EDGE}",
                "router:tandem.attempt L0",
                root,
            ]
            for stage in ("queue", "prefill", "decode")
        },
        **{
            f"tandem.proxy.{stage}": [
                f"cloud:{CLOUD}",
                f"router:{CLOUD}",
                "router:tandem.attempt L2",
                root,
            ]
            for stage in ("limit", "redact", "upstream")
        },
    }
    for name, parents in expected.items():
        assert lineage(escalated, the(escalated, name))[1:] == parents
    known = {name for path in expected.values() for name in path}
    known |= {f"{span.service}:{span.name}" for span in escalated if span.name in expected}
    assert {f"{span.service}:{span.name}" for span in escalated} == known


def test_the_decision_is_on_it(escalated: list[JaegerSpan]) -> None:
    root = the(escalated, ROUTE)
    told = {
        "tandem.level": "L2",
        "tandem.target": "CLOUD_SMALL",
        "tandem.reason": "VALIDATION_FAILED",
        "tandem.fallback_type": "QUALITY",
        "tandem.task_type": "intent_classification",
    }
    assert {key: root.tags[key] for key in told} == told
    assert root.tags["tandem.policy_version"]
    assert not root.failed
    edge, cloud = the(escalated, "tandem.attempt L0"), the(escalated, "tandem.attempt L2")
    assert (edge.tags["tandem.outcome"], edge.failed) == ("REJECTED", True)
    assert (cloud.tags["tandem.outcome"], cloud.failed) == ("ACCEPTED", False)
    assert any(event.get("reason") for event in the(escalated, "tandem.decide").events)
    assert the(escalated, EDGE, "edge").tags["gen_ai.usage.output_tokens"] > 0
    everything = repr([(span.name, span.tags, span.events) for span in escalated])
    assert "zebra" not in everything


def test_durations_add_up(escalated: list[JaegerSpan]) -> None:
    by_id = {span.span_id: span for span in escalated}
    for span in escalated:
        parent = by_id.get(span.parent_id)
        if parent is not None:
            assert parent.start_s - SLACK_S <= span.start_s, span.name
            assert span.end_s <= parent.end_s + SLACK_S, span.name
    root = the(escalated, ROUTE)
    for parent in (root, the(escalated, EDGE, "edge")):
        stages = [span for span in escalated if span.parent_id == parent.span_id]
        stages.sort(key=lambda span: span.start_s)
        for one, after in itertools.pairwise(stages):
            assert one.end_s <= after.start_s + SLACK_S, "stages follow one another"
        told = sum(span.duration_s for span in stages)
        assert 0.7 * parent.duration_s <= told <= parent.duration_s + SLACK_S, parent.name


def test_a_cancelled_call_is_an_error_on_every_hop(tandem: Tandem, jaeger: JaegerServer) -> None:
    trace_id = "c" * 32
    stream = call(tandem, trace_id, question(f"go [[say:{'on and on ' * 40}]]"), PATIENT_MS)
    events = iter(stream)
    while not next(events).chunk.text:
        pass
    stream.cancel()
    spans = wait_for(jaeger, trace_id, ROUTE, "tandem.edge.decode")
    hops = [span for span in spans if "/" in span.name]
    assert {(span.service, span.name) for span in hops} == {
        ("router", ROUTE),
        ("router", EDGE),
        ("edge", EDGE),
    }
    assert all(span.failed for span in hops)
    assert all(span.tags["rpc.grpc.status_code"] == 1 for span in hops)
    assert the(spans, ROUTE).tags["tandem.outcome"] == "CANCELLED"
    attempt = the(spans, "tandem.attempt L0")
    assert (attempt.tags["tandem.outcome"], attempt.failed) == ("CANCELLED", True)


def test_a_timed_out_call_is_an_error(tandem: Tandem, jaeger: JaegerServer) -> None:
    """The provider says nothing until the budget ends: each hop on the way tells of it."""
    trace_id = "d" * 32
    tandem.upstream.script({"ttft_ms": 60_000})
    request = question("[[say:wrong]]")
    request.output.labels.values.extend(["refund", "complaint"])
    list(call(tandem, trace_id, request, 3_000))
    spans = wait_for(jaeger, trace_id, ROUTE, "tandem.proxy.upstream")
    attempt = the(spans, "tandem.attempt L2")
    assert (attempt.tags["tandem.outcome"], attempt.failed) == ("TIMED_OUT", True)
    below = [span for span in spans if "router:tandem.attempt L2" in lineage(spans, span)]
    assert {f"{span.service}:{span.name}" for span in below if span.failed} == {
        "router:tandem.attempt L2",
        f"router:{CLOUD}",
        f"cloud:{CLOUD}",
        "cloud:tandem.proxy.upstream",
    }
    # The caller still got its last resort within the budget.
    assert the(spans, ROUTE).tags["tandem.level"] == "L4"


def test_a_budget_that_is_used_up_is_an_error(tandem: Tandem, jaeger: JaegerServer) -> None:
    trace_id = "b" * 32
    with pytest.raises(grpc.RpcError):
        list(call(tandem, trace_id, question("hello"), 1_000, elapsed_ms="1000"))
    (root,) = wait_for(jaeger, trace_id, ROUTE)
    assert root.failed
    assert root.tags["rpc.grpc.status_code"] == grpc.StatusCode.DEADLINE_EXCEEDED.value[0]
