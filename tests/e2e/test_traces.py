"""One request, one tree of spans over three processes, read back from an OTLP receiver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandem.router.v1 import router_pb2
from tests.e2e.conftest import BURN
from tests.e2e.harness import Tandem, eventually, question
from tests.fakes.otlp_receiver import OtlpReceiver, SeenSpan

TRACE = "0af7651916cd43dd8448eb211c80319c"
SECRET_TEXT = "tell me about the zebra"
ERROR = 2


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def tandem(receiver: OtlpReceiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    system = Tandem(
        Path(tmp_path_factory.mktemp("traced")),
        {**BURN, "TANDEM_EDGE__TELEMETRY__OTLP_ENDPOINT": receiver.address},
        cloud={"TANDEM_CLOUD__TELEMETRY__OTLP_ENDPOINT": receiver.address},
        router={"TANDEM_ROUTER__TELEMETRY__OTLP_ENDPOINT": receiver.address},
    )
    yield system
    system.close()


def ask(tandem: Tandem, trace_id: str, request: router_pb2.RouteRequest) -> None:
    call = tandem.stub.RouteStream(
        router_pb2.RouteStreamRequest(request=request),
        timeout=60,
        metadata=[
            ("deadline_ms", "60000"),
            ("traceparent", f"00-{trace_id}-b7ad6b7169203331-01"),
            ("baggage", "user=zebra"),
        ],
    )
    list(call)


def tree(spans: list[SeenSpan], span: SeenSpan) -> list[str]:
    """Names from a span up to the root."""
    by_id = {s.span_id: s for s in spans}
    names = [span.name]
    while span.parent_id in by_id:
        span = by_id[span.parent_id]
        names.append(span.name)
    return names


def wait_for(receiver: OtlpReceiver, trace_id: str, name: str) -> list[SeenSpan]:
    eventually(lambda: any(s.name == name for s in receiver.spans(trace_id)), f"span {name}", 15)
    return receiver.spans(trace_id)


def test_an_escalated_request_is_one_tree_over_three_processes(
    tandem: Tandem, receiver: OtlpReceiver
) -> None:
    request = question(f"{SECRET_TEXT} [[say:wrong]]")
    request.output.labels.values.extend(["refund", "complaint"])
    tandem.upstream.script({"text": "refund"})
    ask(tandem, TRACE, request)
    wait_for(receiver, TRACE, "tandem.router.v1.RouterService/RouteStream")
    wait_for(receiver, TRACE, "tandem.proxy.upstream")
    spans = wait_for(receiver, TRACE, "tandem.edge.decode")
    ids = {span.span_id for span in spans}
    roots = [span for span in spans if span.parent_id not in ids]
    assert [root.name for root in roots] == ["tandem.router.v1.RouterService/RouteStream"]
    assert roots[0].parent_id == "b7ad6b7169203331"
    assert {span.service for span in spans} == {"router", "edge", "cloud"}
    upstream = next(span for span in spans if span.name == "tandem.proxy.upstream")
    assert tree(spans, upstream) == [
        "tandem.proxy.upstream",
        "tandem.cloud.v1.CloudProxyService/Generate",
        "tandem.cloud.v1.CloudProxyService/Generate",
        "tandem.attempt L2",
        "tandem.router.v1.RouterService/RouteStream",
    ]
    decode = next(span for span in spans if span.name == "tandem.edge.decode")
    assert tree(spans, decode)[-2:] == [
        "tandem.attempt L0",
        "tandem.router.v1.RouterService/RouteStream",
    ]
    assert roots[0].attributes["tandem.reason"] == "VALIDATION_FAILED"
    assert roots[0].attributes["tandem.level"] == "L2"
    exported = json.dumps([(s.name, s.attributes) for s in receiver.spans()], default=str)
    assert "zebra" not in exported


def test_a_cancelled_call_has_error_status_on_every_hop(
    tandem: Tandem, receiver: OtlpReceiver
) -> None:
    trace_id = "1" * 32
    call = tandem.stub.RouteStream(
        router_pb2.RouteStreamRequest(request=question("go [[say:" + "on and on " * 40 + "]]")),
        timeout=60,
        metadata=[("deadline_ms", "60000"), ("traceparent", f"00-{trace_id}-b7ad6b7169203331-01")],
    )
    next(call)
    call.cancel()
    spans = wait_for(receiver, trace_id, "tandem.router.v1.RouterService/RouteStream")
    rpcs = [span for span in spans if "/" in span.name]
    assert rpcs
    assert all(span.status == ERROR for span in rpcs)
    root = next(span for span in spans if span.name.endswith("RouteStream"))
    assert root.attributes["rpc.grpc.status_code"] == 1
    assert root.attributes["tandem.outcome"] == "CANCELLED"


def test_metrics_arrive_too(tandem: Tandem, receiver: OtlpReceiver) -> None:
    wanted = {
        "tandem.requests",
        "tandem.loop.lag",
        "tandem.edge.step.rows",
        "tandem.upstream.calls",
    }
    eventually(lambda: wanted <= receiver.metric_names, f"metrics {wanted}", 25)
