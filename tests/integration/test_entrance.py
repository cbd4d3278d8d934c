"""The interceptor alone: bounded admission, unknown errors, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from services.common.deadline import BudgetLimits
from services.common.rpc.call import Principal, current_call
from services.common.rpc.entrance import Entrance
from tandem.router.v1 import router_pb2, router_pb2_grpc


class Everyone:
    """Admits all."""

    def authenticate(self, method: str, metadata: Mapping[str, str]) -> Principal:
        return Principal("test", "test")

    def limits(self, principal: Principal) -> BudgetLimits:
        return BudgetLimits()


class Servicer(router_pb2_grpc.RouterServiceServicer):
    """Waits, or fails, as the task type says."""

    def __init__(self) -> None:
        self.cleaned = asyncio.Event()

    async def Route(self, request: router_pb2.RouteRequest, context: Any) -> Any:
        if request.task_type == "fail":
            raise RuntimeError("a secret detail")
        if request.task_type == "wait":
            try:
                await asyncio.sleep(30)
            finally:
                self.cleaned.set()
        return router_pb2.RouteResponse(request_id=current_call().request_id)


@pytest.fixture
async def served() -> AsyncIterator[tuple[Servicer, Any]]:
    server = grpc.aio.server(interceptors=[Entrance(Everyone(), max_concurrent=2)])
    servicer = Servicer()  # type: ignore[abstract]  # the others are not called
    router_pb2_grpc.add_RouterServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield servicer, router_pb2_grpc.RouterServiceStub(channel)
    await server.stop(None)


async def test_one_call_too_many_is_told_when_to_come_back(served: tuple[Servicer, Any]) -> None:
    _, stub = served
    waiting = [stub.Route(router_pb2.RouteRequest(task_type="wait")) for _ in range(2)]
    await asyncio.sleep(0.3)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Route(router_pb2.RouteRequest())
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    trailers: Any = dict(caught.value.trailing_metadata())
    status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
    retry = error_details_pb2.RetryInfo()
    assert any(detail.Unpack(retry) for detail in status.details)
    assert retry.retry_delay.ToMilliseconds() > 0
    for call in waiting:
        call.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    # The places are free again.
    for _ in range(100):
        try:
            await stub.Route(router_pb2.RouteRequest())
            break
        except grpc.aio.AioRpcError:
            await asyncio.sleep(0.05)
    else:
        raise AssertionError("the places were not given back")


async def test_an_unknown_error_says_nothing_of_its_detail(served: tuple[Servicer, Any]) -> None:
    _, stub = served
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Route(router_pb2.RouteRequest(task_type="fail"))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in str(caught.value)


async def test_a_cancelled_call_runs_its_finally(served: tuple[Servicer, Any]) -> None:
    servicer, stub = served
    call = stub.Route(router_pb2.RouteRequest(task_type="wait"))
    await asyncio.sleep(0.2)
    call.cancel()
    await asyncio.wait_for(servicer.cleaned.wait(), 5)
