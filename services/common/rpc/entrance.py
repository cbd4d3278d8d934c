"""The server interceptor: every call of ours enters and leaves through here.

It authenticates, reads the budget, opens the server span, binds the log context,
maps errors to status details, and sends `elapsed_ms` in the trailers.

Streaming handlers are coroutines that `await context.write(...)`, never async
generators: a cancelled call is cancelled where it awaits, inside the handler's
own frames, so that `finally` blocks run at once and not when the garbage
collector finds a suspended generator.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
import structlog
from google.protobuf.message import DecodeError
from grpc.aio import AbortError
from opentelemetry import metrics, propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from services.common.deadline import ELAPSED_KEY, BudgetLimits, parse_budget
from services.common.errors import Internal, InvalidField, QueueFull, TandemError
from services.common.rpc.call import Call, Principal, enter_call
from services.common.rpc.status import rpc_status, status_of
from services.common.telemetry import names

Handler = Callable[[Any, Any], Awaitable[Any]]

_log = structlog.get_logger()
_tracer = trace.get_tracer("tandem.rpc")
_duration = metrics.get_meter("tandem.rpc").create_histogram(
    names.SERVER_DURATION, unit="ms", description="Calls served, by method and status"
)
_MAX_ID_CHARS = 128
# Calls last about a second: sooner than this there is hardly a free place.
OVERLOAD_RETRY_MS = 500


class Admission(Protocol):
    """Who may call, and how much time they get."""

    def authenticate(self, method: str, metadata: Mapping[str, str]) -> Principal:
        """Finds the caller.

        Raises:
            Unauthenticated: No valid credential.
            PermissionDenied: Not this method.
        """

    def limits(self, principal: Principal) -> BudgetLimits:
        """The caller's default and longest budget."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A call as gRPC hands it over."""

    method: str
    context: Any
    pairs: tuple[tuple[str, Any], ...]
    received_at: float


class Entrance(grpc.aio.ServerInterceptor):
    """Wraps every method of our own packages; health and reflection pass untouched.

    Args:
        admission: Who may call.
        max_concurrent: Calls served at once; one more is refused with `RetryInfo`,
            which gRPC's own bound cannot send.
    """

    def __init__(self, admission: Admission, max_concurrent: int) -> None:
        self._admission = admission
        self._max_concurrent = max_concurrent
        self._active = 0

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        if handler is None or not details.method.startswith("/tandem."):
            return handler
        make = (
            grpc.unary_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        inner = handler.unary_stream if handler.response_streaming else handler.unary_unary
        # Parsed in `_serve`, so that bytes that are no message get a status of ours
        # and not gRPC's UNKNOWN with the text of a Python exception.
        return make(
            self._wrap(details.method, _parsing(handler.request_deserializer, inner)),
            request_deserializer=None,
            response_serializer=handler.response_serializer,
        )

    def _wrap(self, method: str, inner: Handler) -> Handler:
        service, _, name = method.lstrip("/").partition("/")
        attributes = {
            names.RPC_SYSTEM: "grpc",
            names.RPC_SERVICE: service,
            names.RPC_METHOD: name,
        }

        async def serve(request: Any, context: Any) -> Any:
            pairs = tuple(context.invocation_metadata() or ())
            arrival = _Arrival(method, context, pairs, time.monotonic())
            # Only the trace's own keys are taken from outside: `baggage` is dropped here.
            carrier = {k: v for k, v in pairs if k in ("traceparent", "tracestate")}
            with _tracer.start_as_current_span(
                f"{service}/{name}",
                context=propagate.extract(carrier),
                kind=SpanKind.SERVER,
                attributes=attributes,
                record_exception=False,
                set_status_on_exception=False,
            ) as span:
                self._active += 1
                try:
                    return await self._serve(arrival, inner, request, span)
                finally:
                    self._active -= 1

        return serve

    async def _serve(
        self, arrival: _Arrival, inner: Handler, request: Any, span: trace.Span
    ) -> Any:
        call: Call | None = None
        status = grpc.StatusCode.OK
        try:
            call = self._admit(arrival)
            enter_call(call)
            structlog.contextvars.bind_contextvars(request_id=call.request_id)
            span.set_attributes(_call_attributes(call))
            result = await inner(request, arrival.context)
            arrival.context.set_trailing_metadata(_trailers(call))
            return result
        except TandemError as error:
            status = grpc.StatusCode[_code_name(error)]
            span.set_attribute(names.ERROR_REASON, error.reason)
            await _abort(arrival.context, error, call)
        except AbortError:
            raise
        except asyncio.CancelledError:
            status = _why_cancelled(arrival.context)
            raise
        except Exception:
            status = grpc.StatusCode.INTERNAL
            _log.exception("call_failed", method=arrival.method)
            await _abort(arrival.context, Internal(), call)
        finally:
            span.set_attribute(names.RPC_STATUS, status.value[0])
            if status is not grpc.StatusCode.OK:
                span.set_status(Status(StatusCode.ERROR, status.name))
            _measure(arrival, status)

    def _admit(self, arrival: _Arrival) -> Call:
        if self._active > self._max_concurrent:
            raise QueueFull("too many calls at once", retry_after_ms=OVERLOAD_RETRY_MS)
        metadata = {key: value for key, value in arrival.pairs if isinstance(value, str)}
        principal = self._admission.authenticate(arrival.method, metadata)
        budget = parse_budget(
            arrival.pairs,
            native_remaining_s=arrival.context.time_remaining(),
            limits=self._admission.limits(principal),
            now=arrival.received_at,
        )
        return Call(
            method=arrival.method,
            request_id=_identifier(metadata, "x-request-id") or str(uuid.uuid4()),
            session_id=_identifier(metadata, "x-session-id"),
            principal=principal,
            budget=budget,
            metadata=metadata,
        )


def _measure(arrival: _Arrival, status: grpc.StatusCode) -> None:
    service, _, name = arrival.method.lstrip("/").partition("/")
    code: int = status.value[0]
    labels: dict[str, str | int] = {
        names.RPC_SERVICE: service,
        names.RPC_METHOD: name,
        names.RPC_STATUS: code,
    }
    _duration.record((time.monotonic() - arrival.received_at) * 1000.0, labels)


def _parsing(parse: Callable[[bytes], Any], inner: Handler) -> Handler:
    async def handle(raw: bytes, context: Any) -> Any:
        try:
            request = parse(raw)
        except DecodeError as exc:
            rule = "must be a protobuf message of this method, its texts valid UTF-8"
            raise InvalidField("request", rule) from exc
        return await inner(request, context)

    return handle


def _identifier(metadata: Mapping[str, str], key: str) -> str:
    value = metadata.get(key, "")
    if len(value) > _MAX_ID_CHARS or not value.isprintable():
        raise InvalidField(key, f"must be at most {_MAX_ID_CHARS} printable characters")
    return value


def _call_attributes(call: Call) -> dict[str, str | int]:
    return {
        names.REQUEST_ID: call.request_id,
        names.TENANT: call.principal.tenant,
        names.DEADLINE_MS: call.budget.deadline_ms,
        names.ELAPSED_MS: call.budget.elapsed_ms,
    }


def _trailers(call: Call) -> tuple[tuple[str, str], ...]:
    elapsed = str(call.budget.total_elapsed_ms(time.monotonic()))
    trailers = {**call.trailers, "x-request-id": call.request_id, ELAPSED_KEY: elapsed}
    return tuple(trailers.items())


async def _abort(context: Any, error: TandemError, call: Call | None) -> None:
    """Ends the call with status details and our trailers; always raises AbortError.

    `abort_with_status` would send the details alone and drop the trailers set before.
    """
    status = rpc_status.to_status(status_of(error))
    trailers = (*status.trailing_metadata, *(_trailers(call) if call else ()))
    await context.abort(status.code, status.details, trailers)


def _why_cancelled(context: Any) -> grpc.StatusCode:
    """gRPC cancels the task alike for a caller that left and a native deadline that passed."""
    remaining_s = context.time_remaining()
    if remaining_s is not None and remaining_s <= 0:
        return grpc.StatusCode.DEADLINE_EXCEEDED
    return grpc.StatusCode.CANCELLED


def _code_name(error: TandemError) -> str:
    return getattr(error, "remote_code", error.code).value  # type: ignore[no-any-return]
