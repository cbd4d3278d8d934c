"""The error tree and its way over the wire."""

from __future__ import annotations

import grpc
import pytest

from services.common import errors
from services.common.rpc.status import error_from_rpc, rpc_status, status_of


def tree(base: type[errors.TandemError]) -> list[type[errors.TandemError]]:
    return [base, *(found for kind in base.__subclasses__() for found in tree(kind))]


def test_every_class_has_a_reason_in_upper_snake_and_a_real_status() -> None:
    for kind in tree(errors.TandemError):
        assert kind.reason == kind.reason.upper().replace(" ", "_")
        assert kind.code.value in grpc.StatusCode.__members__


def wire(error: errors.TandemError) -> grpc.aio.AioRpcError:
    status = rpc_status.to_status(status_of(error))
    return grpc.aio.AioRpcError(
        status.code,
        grpc.aio.Metadata(),
        grpc.aio.Metadata(*status.trailing_metadata),
        details=status.details,
    )


@pytest.mark.parametrize(
    "error",
    [
        errors.QueueFull("full", retry_after_ms=1_500),
        errors.UpstreamStalled("stalled"),
        errors.InvalidField("messages[0].role", "must be one of A, B"),
    ],
)
def test_reason_retryability_and_delay_survive_the_wire(error: errors.TandemError) -> None:
    back = error_from_rpc(wire(error))
    assert back.remote_code is error.code
    assert back.remote_reason == error.reason
    assert back.remote_retryable is error.retryable
    assert back.retry_after_ms == error.retry_after_ms
    assert status_of(back).code == status_of(error).code


def test_a_status_without_details_is_still_understood() -> None:
    plain = grpc.aio.AioRpcError(
        grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), details="refused"
    )
    back = error_from_rpc(plain)
    assert back.remote_reason == "UNAVAILABLE" and back.remote_retryable
