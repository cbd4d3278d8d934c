"""Errors to gRPC status details, and back."""

from __future__ import annotations

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from services.common.errors import Code, InvalidField, RemoteError, TandemError

DOMAIN = "tandem"


def status_of(error: TandemError) -> status_pb2.Status:
    """The `google.rpc.Status` of an error: ErrorInfo always, BadRequest and RetryInfo where fit."""
    code, reason, retryable = error.code, error.reason, error.retryable
    if isinstance(error, RemoteError):
        code, reason, retryable = error.remote_code, error.remote_reason, error.remote_retryable
    status = status_pb2.Status(code=code_pb2.Code.Value(code.value), message=error.message)
    info = error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN)
    info.metadata["retryable"] = "true" if retryable else "false"
    _pack(status, info)
    if isinstance(error, InvalidField):
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=error.field, description=error.rule
        )
        _pack(status, error_details_pb2.BadRequest(field_violations=[violation]))
    if error.retry_after_ms is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(error.retry_after_ms)
        _pack(status, error_details_pb2.RetryInfo(retry_delay=delay))
    return status


def error_from_rpc(exc: grpc.aio.AioRpcError) -> RemoteError:
    """What a failed call of ours says, with reason and retry delay where sent."""
    code = Code.__members__.get(exc.code().name, Code.UNKNOWN)
    reason, retryable, retry_after_ms = code.value, code is Code.UNAVAILABLE, None
    for detail in _details_of(exc):
        info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            reason = info.reason
            retryable = info.metadata.get("retryable") == "true"
        elif detail.Unpack(retry):
            retry_after_ms = retry.retry_delay.ToMilliseconds()
    return RemoteError(
        exc.details() or code.value,
        code=code,
        reason=reason,
        retryable=retryable,
        retry_after_ms=retry_after_ms,
    )


def _details_of(exc: grpc.aio.AioRpcError) -> list[any_pb2.Any]:
    for key, value in exc.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            try:
                return list(status_pb2.Status.FromString(value).details)
            except ValueError:
                return []
    return []


def _pack(status: status_pb2.Status, detail: object) -> None:
    status.details.add().Pack(detail)


__all__ = ["error_from_rpc", "rpc_status", "status_of"]
