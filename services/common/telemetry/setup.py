"""Starts OpenTelemetry and structlog for one process."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import MutableMapping
from typing import Any

import structlog
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from services.common.errors import ConfigInvalid
from services.common.settings import TelemetrySettings

# How long a stopping process waits for its last spans to be handed over.
FLUSH_S = 2.0


class Telemetry:
    """What was started, so that it can be flushed at the end."""

    def __init__(
        self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None
    ) -> None:
        self._tracer_provider = tracer_provider
        self._meter_provider = meter_provider

    def close(self) -> None:
        """Flushes and stops the exporters; blocks at most `FLUSH_S`.

        With the receiver down the exporters retry beyond the timeout that they are given,
        so they are left behind on a thread that does not hold the process.
        """
        closing = threading.Thread(target=self._close, name="telemetry-close", daemon=True)
        closing.start()
        closing.join(FLUSH_S)

    def _close(self) -> None:
        if self._tracer_provider is not None:
            self._tracer_provider.shutdown()
        if self._meter_provider is not None:
            self._meter_provider.shutdown()


def start_telemetry(service: str, settings: TelemetrySettings) -> Telemetry:
    """Sets up logs, and exporters where an endpoint is named.

    Exporters run on threads of their own; a receiver that is down costs dropped
    spans, never a request. Without an endpoint the no-op providers stay, so that
    spans cost next to nothing.
    """
    configure_logs(service, settings)
    resource = Resource.create({"service.name": service, "service.namespace": "tandem"})
    return Telemetry(_start_traces(settings, resource), _start_metrics(settings, resource))


def _start_traces(settings: TelemetrySettings, resource: Resource) -> TracerProvider | None:
    if not settings.otlp_endpoint:
        return None
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(settings.trace_ratio)),
        resource=resource,
        shutdown_on_exit=False,
    )
    exporter = OTLPSpanExporter(endpoint=settings.otlp_endpoint, insecure=True)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1_000))
    trace.set_tracer_provider(provider)
    return provider


def _start_metrics(settings: TelemetrySettings, resource: Resource) -> MeterProvider | None:
    """Pushed by OTLP, kept for Prometheus to fetch, or both (docs/adr/0015-metrics.md)."""
    readers: list[MetricReader] = []
    if settings.otlp_endpoint:
        exporter = OTLPMetricExporter(endpoint=settings.otlp_endpoint, insecure=True)
        readers.append(PeriodicExportingMetricReader(exporter, export_interval_millis=10_000))
    if settings.metrics_listen:
        # Scopes are our module names: every series would carry one label more for nothing.
        readers.append(PrometheusMetricReader(scope_info_enabled=False))
    if not readers:
        return None
    provider = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    metrics.set_meter_provider(provider)
    return provider


def configure_logs(service: str, settings: TelemetrySettings) -> None:
    """structlog to stderr: JSON lines with trace ids, colour on a terminal.

    Raises:
        ConfigInvalid: Unknown level or format.
    """
    level = logging.getLevelNamesMapping().get(settings.log_level.upper())
    if level is None:
        raise ConfigInvalid("telemetry.log_level: must be debug, info, warning or error")
    if settings.log_format not in ("auto", "json", "console"):
        raise ConfigInvalid("telemetry.log_format: must be auto, json or console")
    pretty = settings.log_format == "console" or (
        settings.log_format == "auto" and sys.stderr.isatty()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _service_name(service),
            _trace_ids,
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer() if pretty else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _service_name(service: str) -> structlog.typing.Processor:
    def add(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["service"] = service
        return event

    return add


def _trace_ids(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = format(context.trace_id, "032x")
        event["span_id"] = format(context.span_id, "016x")
    return event
