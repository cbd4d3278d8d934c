"""How one service of ours calls another: channel, metadata, span, errors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from services.common.deadline import Budget
from services.common.rpc.status import error_from_rpc
from services.common.rpc.tls import channel_credentials
from services.common.settings import ServerSettings, TlsSettings
from services.common.telemetry import names

_tracer = trace.get_tracer("tandem.rpc")

KEEPALIVE_MS = 20_000
KEEPALIVE_TIMEOUT_MS = 5_000
# gRPC's own 30 s between two questions to DNS outlast a rolling restart: a channel would end
# up with the addresses of pods that are all gone.
DNS_PAUSE_MS = 1_000
_COMMON_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
)


def server_options(settings: ServerSettings) -> list[tuple[str, int | str]]:
    """Options of every server of ours; it permits the keepalive that our channels use."""
    return [
        *_COMMON_OPTIONS,
        ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_MS // 2),
        ("grpc.max_connection_age_ms", settings.max_connection_age_ms),
        ("grpc.max_connection_age_grace_ms", settings.max_connection_age_grace_ms),
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", settings.max_message_bytes),
        # A second process on the same port would silently take half the calls.
        ("grpc.so_reuseport", 0),
    ]


def channel_options(max_message_bytes: int) -> list[tuple[str, int | str]]:
    """Options of every channel of ours, and of callers': round robin, quick reconnect."""
    return [
        *_COMMON_OPTIONS,
        ("grpc.lb_policy_name", "round_robin"),
        ("grpc.enable_retries", 0),
        # gRPC would send our own hops, prompts and all, through http_proxy.
        ("grpc.enable_http_proxy", 0),
        ("grpc.dns_min_time_between_resolutions_ms", DNS_PAUSE_MS),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1_000),
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
    ]


def open_channel(
    address: str, max_message_bytes: int, tls: TlsSettings | None = None
) -> grpc.aio.Channel:
    """A channel: round robin, quick reconnect, no retries by gRPC itself.

    Retries are owned by the cloud proxy alone, so that nothing is paid for twice.
    Without the files of `tls` it is in clear.
    """
    options = channel_options(max_message_bytes)
    credentials = channel_credentials(tls) if tls is not None else None
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=options)
    return grpc.aio.secure_channel(address, credentials, options=options)


@asynccontextmanager
async def open_call(
    method: Any,
    request: Any,
    *,
    name: str,
    budget: Budget,
    cap_ms: float,
    request_id: str,
    metadata: Sequence[tuple[str, str]] = (),
) -> AsyncIterator[Any]:
    """Opens a call with budget, trace and request id; cancels what still runs on the way out.

    Args:
        method: A stub's method: a stream is iterated over, a unary call awaited.
        request: The request message.
        name: `package.Service/Method`, the span's name.
        budget: The budget of the call being served.
        cap_ms: Most time this call may take; also its native gRPC deadline.
        request_id: Id of the routed request.
        metadata: More pairs, such as credentials.

    Raises:
        RemoteError: The call failed; carries status, reason and retry delay.
    """
    span = _client_span(name)
    call = method(
        request,
        timeout=cap_ms / 1000.0,
        metadata=(
            *budget.child_metadata(time.monotonic(), cap_ms),
            ("x-request-id", request_id),
            *_trace_pairs(span),
            *metadata,
        ),
    )
    code = grpc.StatusCode.OK
    try:
        yield call
    except grpc.aio.AioRpcError as exc:
        code = exc.code()
        raise error_from_rpc(exc) from exc
    except asyncio.CancelledError:
        code = grpc.StatusCode.CANCELLED
        raise
    finally:
        call.cancel()
        span.set_attribute(names.RPC_STATUS, code.value[0])
        if code is not grpc.StatusCode.OK:
            span.set_status(Status(StatusCode.ERROR, code.name))
        span.end()


def _client_span(name: str) -> trace.Span:
    service, _, method = name.partition("/")
    attributes = {
        names.RPC_SYSTEM: "grpc",
        names.RPC_SERVICE: service,
        names.RPC_METHOD: method,
    }
    return _tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)


def _trace_pairs(span: trace.Span) -> list[tuple[str, str]]:
    """The trace's own keys alone; baggage does not travel."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context=trace.set_span_in_context(span))
    return [(key, carrier[key]) for key in ("traceparent", "tracestate") if key in carrier]
