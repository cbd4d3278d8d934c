"""A real OTLP/gRPC receiver that keeps what it gets."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1 import (
    metrics_service_pb2,
    metrics_service_pb2_grpc,
)
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


@dataclass(frozen=True, slots=True)
class SeenSpan:
    """One span as it came over the network."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    status: int
    attributes: dict[str, Any]


class OtlpReceiver(
    trace_service_pb2_grpc.TraceServiceServicer, metrics_service_pb2_grpc.MetricsServiceServicer
):
    """`with OtlpReceiver() as receiver:` listens on a free port."""

    def __init__(self) -> None:
        self._spans: list[SeenSpan] = []
        self._lock = threading.Lock()
        self._server = grpc.server(ThreadPoolExecutor(2))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self.metric_names: set[str] = set()

    def Export(self, request: Any, context: Any) -> Any:
        """Takes spans or metrics: both services name their method so."""
        if isinstance(request, trace_service_pb2.ExportTraceServiceRequest):
            self._take_spans(request)
            return trace_service_pb2.ExportTraceServiceResponse()
        with self._lock:
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    self.metric_names.update(metric.name for metric in scope.metrics)
        return metrics_service_pb2.ExportMetricsServiceResponse()

    def spans(self, trace_id: str = "") -> list[SeenSpan]:
        """Spans so far, of one trace or of all."""
        with self._lock:
            return [span for span in self._spans if trace_id in ("", span.trace_id)]

    def _take_spans(self, request: Any) -> None:
        with self._lock:
            for resource in request.resource_spans:
                service = _attributes(resource.resource.attributes)["service.name"]
                for scope in resource.scope_spans:
                    self._spans.extend(_seen(service, span) for span in scope.spans)

    def __enter__(self) -> OtlpReceiver:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.stop(None).wait()


def _seen(service: str, span: Any) -> SeenSpan:
    return SeenSpan(
        service=service,
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        status=span.status.code,
        attributes=_attributes(span.attributes),
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
