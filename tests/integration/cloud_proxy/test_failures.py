"""Each thing that a provider can do wrong, as the caller sees it."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import grpc
import pytest

from services.common.rpc.status import error_from_rpc
from tandem.common.v1 import chat_pb2
from tests.fakes.upstream_process import UpstreamProcess
from tests.integration.cloud_proxy.conftest import KEY, MakeProxy, Proxy

NO_RETRY = {"retry": "none"}


async def fails(proxy: Proxy, **kwargs: Any) -> tuple[grpc.StatusCode, Any, str]:
    """Status, error and the text that came before it."""
    text = ""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for event in proxy.open(**kwargs):
            text += event.delta.text
    assert KEY not in (caught.value.details() or "")
    assert "leaked-key" not in (caught.value.details() or "")
    return caught.value.code(), error_from_rpc(caught.value), text


@pytest.mark.parametrize(
    ("behaviour", "code", "reason"),
    [
        ({"status": 400}, "FAILED_PRECONDITION", "UPSTREAM_REFUSED"),
        ({"status": 401}, "FAILED_PRECONDITION", "UPSTREAM_REFUSED"),
        ({"status": 403}, "FAILED_PRECONDITION", "UPSTREAM_REFUSED"),
        ({"status": 404}, "FAILED_PRECONDITION", "UPSTREAM_REFUSED"),
        ({"status": 302}, "FAILED_PRECONDITION", "UPSTREAM_REFUSED"),
        ({"status": 429}, "UNAVAILABLE", "UPSTREAM_OVERLOADED"),
        ({"status": 500}, "UNAVAILABLE", "UPSTREAM_OVERLOADED"),
        ({"status": 503}, "UNAVAILABLE", "UPSTREAM_OVERLOADED"),
        ({"content_type": "text/html"}, "UNAVAILABLE", "UPSTREAM_MALFORMED"),
        ({"bad_json_after": 0}, "UNAVAILABLE", "UPSTREAM_MALFORMED"),
        ({"error_after": 0}, "UNAVAILABLE", "UPSTREAM_OVERLOADED"),
        (
            {"error_after": 0, "error_code": "context_length_exceeded"},
            "FAILED_PRECONDITION",
            "UPSTREAM_REFUSED",
        ),
        ({"error_after": 0, "error_code": "??"}, "UNAVAILABLE", "UPSTREAM_FAILED"),
        ({"stall_after": 1}, "UNAVAILABLE", "UPSTREAM_STALLED"),
        ({"cut_after": 1}, "UNAVAILABLE", "UPSTREAM_CUT"),
        ({"end_after": 1}, "UNAVAILABLE", "UPSTREAM_CUT"),
        ({"ttft_ms": 3000}, "UNAVAILABLE", "UPSTREAM_STALLED"),
    ],
)
async def test_each_failure_has_its_own_reason(
    make_proxy: MakeProxy,
    upstream: UpstreamProcess,
    behaviour: dict[str, Any],
    code: str,
    reason: str,
) -> None:
    upstream.default(**behaviour)
    status, error, _ = await fails(await make_proxy(small=NO_RETRY))
    assert (status.name, error.remote_reason) == (code, reason)
    assert len(upstream.seen()) == 1


async def test_nobody_listens(make_proxy: MakeProxy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    proxy = await make_proxy(base_url=f"http://127.0.0.1:{port}/v1")
    status, error, _ = await fails(proxy)
    assert (status.name, error.remote_reason) == ("UNAVAILABLE", "UPSTREAM_UNREACHABLE")
    assert error.remote_retryable


@pytest.mark.parametrize("behaviour", [{"cut_after": 4}, {"stall_after": 4}, {"bad_json_after": 4}])
async def test_nothing_is_tried_again_after_the_first_token(
    make_proxy: MakeProxy, upstream: UpstreamProcess, behaviour: dict[str, Any]
) -> None:
    upstream.script({"text": "a b c d e f", **behaviour})
    _, _, text = await fails(await make_proxy())
    assert text == "a b c"
    assert len(upstream.seen()) == 1


async def test_backoff_tries_again_before_the_first_token(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.script({"status": 503}, {"cut_after": 1}, {"bad_json_after": 1}, {"text": "at last"})
    answer = await (await make_proxy()).collect("hi")
    assert (answer.text, answer.started.provider_calls) == ("at last", 4)


async def test_backoff_ends_after_its_steps(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.default(status=503)
    await fails(await make_proxy())
    assert len(upstream.seen()) == 4


async def test_refusals_are_never_tried_again(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.default(status=400)
    await fails(await make_proxy())
    assert len(upstream.seen()) == 1


async def test_once_on_timeout(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    proxy = await make_proxy(small={"retry": "once_on_timeout"})
    upstream.script({"ttft_ms": 3000}, {"text": "second"})
    assert (await proxy.collect("hi")).text == "second"
    upstream.reset()
    upstream.default(status=503)
    await fails(proxy)
    assert len(upstream.seen()) == 1


async def test_retry_after_is_kept(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    upstream.script({"status": 429, "retry_after": "1"}, {"text": "ok"})
    began = time.monotonic()
    await (await make_proxy()).collect("hi")
    assert time.monotonic() - began >= 1.0


async def test_retry_after_beyond_the_budget_gives_up_at_once(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.default(status=429, retry_after="3600")
    began = time.monotonic()
    _, error, _ = await fails(await make_proxy())
    assert time.monotonic() - began < 5.0
    assert error.retry_after_ms == 3_600_000
    assert len(upstream.seen()) == 1


async def test_budget_ends_a_slow_answer(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    upstream.default(chunk_ms=150, text="a b c d e f g h i j k l m n o p")
    proxy = await make_proxy()
    status, error, text = await fails(
        proxy, metadata=proxy.metadata(deadline_ms="700"), timeout=None
    )
    assert (status.name, error.remote_reason) == ("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED")
    assert text
    await asyncio.to_thread(upstream.wait_outcome, "disconnected")


async def test_too_large_an_answer_is_cut(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    upstream.script({"text": "word " * 2_000})
    _, error, _ = await fails(await make_proxy(small={"max_response_bytes": 20_000}))
    assert error.remote_reason == "UPSTREAM_MALFORMED"


async def test_cancel_closes_the_upstream_connection(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.default(chunk_ms=100, text="word " * 200)
    stream = (await make_proxy()).open()
    async for event in stream:
        if event.WhichOneof("event") == "delta":
            break
    stream.cancel()
    # In a thread: the proxy runs on this loop.
    seen = await asyncio.to_thread(upstream.wait_outcome, "disconnected", within_s=5)
    assert seen["chunks_sent"] < 100


async def test_cancel_before_the_first_token_closes_it_too(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.default(ttft_ms=60_000)
    proxy = await make_proxy(small={"stall_ms": 60_000})
    stream = proxy.open()
    await asyncio.to_thread(upstream.wait_outcome, "open")
    stream.cancel()
    await asyncio.to_thread(upstream.wait_outcome, "disconnected", within_s=5)


async def test_a_bad_field_is_named(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    proxy = await make_proxy()
    message = chat_pb2.Message(role=chat_pb2.ROLE_USER, content="hi")
    tool = chat_pb2.Message(role=chat_pb2.ROLE_TOOL)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"messages": []}, "messages"),
        ({"tier": 0}, "tier"),
        ({"max_output_tokens": -1}, "max_output_tokens"),
        ({"messages": [chat_pb2.Message(content="x")]}, "messages[0].role"),
        (
            {"few_shot": [message, tool]},
            "few_shot[1].tool_call_id",
        ),
        ({"sampling": chat_pb2.Sampling(temperature=3)}, "sampling.temperature"),
    ]
    for fields, field in cases:
        status, error, _ = await fails(proxy, **fields)
        assert status.name == "INVALID_ARGUMENT"
        assert error.message.startswith(field + ":")
    assert upstream.seen() == []
