"""Limits on real calls through the proxy: what is taken, given back, told."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from services.common.rpc.status import error_from_rpc
from tests.fakes.upstream_process import UpstreamProcess
from tests.integration.cloud_proxy.conftest import MakeProxy, Proxy

# "hi" is 5 tokens by our estimate; with this cap a call reserves 100.
CAP = 95
REAL = {"text": "word " * 99}
REMAINING = "x-ratelimit-remaining-"


async def ask(proxy: Proxy, **kwargs: Any) -> tuple[Any, dict[str, str]]:
    """The error or None, and the remaining quota by name."""
    stream = proxy.open("hi", max_output_tokens=CAP, **kwargs)
    error = None
    try:
        async for _ in stream:
            pass
    except grpc.aio.AioRpcError as exc:
        error = exc
    told = {
        key.removeprefix(REMAINING): str(value)
        for key, value in await stream.trailing_metadata()
        if key.startswith(REMAINING)
    }
    return error and error_from_rpc(error), told


async def left(proxy: Proxy, name: str) -> int:
    """What is left before a further call, which gives back all it takes."""
    _, told = await ask(proxy, system="write to zhang.wei@example.com")
    reserved = {"tokens": 100 + 9, "requests": 1}
    return int(told[name]) + reserved[name]


def limits(**tenant: Any) -> dict[str, Any]:
    return {"limits": {"tenant": tenant}, "pii": "refuse"}


async def test_fifty_parallel_calls(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    upstream.default(**REAL)
    proxy = await make_proxy(**limits(tokens_per_min=1_000))
    answers = await asyncio.gather(*(ask(proxy) for _ in range(50)))
    errors = [error for error, _ in answers if error is not None]
    assert len(errors) == 40
    assert len(upstream.seen()) == 10
    for error in errors:
        assert (error.remote_code.name, error.remote_reason) == (
            "RESOURCE_EXHAUSTED",
            "RATE_LIMITED",
        )
        assert error.remote_retryable
        assert 0 < error.retry_after_ms <= 61_000
    error, told = await ask(proxy)
    assert error is not None
    assert told == {"tokens": "0"}


async def test_what_was_not_used_comes_back(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.default(text="word " * 19)
    proxy = await make_proxy(**limits(tokens_per_min=200, requests_per_min=100))
    for used in (0, 20, 40, 60, 80, 100):
        error, told = await ask(proxy)
        assert error is None
        assert told == {"tokens": str(100 - used), "requests": str(99 - used // 20)}
    error, told = await ask(proxy)
    assert error.remote_reason == "RATE_LIMITED"
    assert told == {"tokens": "80", "requests": "94"}


@pytest.mark.parametrize(
    ("behaviour", "used"),
    [
        ({"status": 503}, 0),
        ({"status": 429, "retry_after": "30"}, 0),
        ({"status": 400}, 0),
        # Sent, and no answer: possibly billed, at least its prompt of 5.
        ({"stall_after": 1}, 5),
        ({"cut_after": 1}, 5),
        # Our count: the prompt, and "a b c".
        ({"text": "a b c d e f", "cut_after": 4}, 5 + 2),
        ({"text": "a b c", "usage": "none"}, 5 + 2),
        ({"text": "a b c"}, 1 + 3),
    ],
)
async def test_calls_are_settled_by_how_they_end(
    make_proxy: MakeProxy, upstream: UpstreamProcess, behaviour: dict[str, Any], used: int
) -> None:
    upstream.script(behaviour)
    small = {"retry": "none", "stall_ms": 200}
    proxy = await make_proxy(small, **limits(tokens_per_min=1_000, requests_per_min=10))
    await ask(proxy)
    assert await left(proxy, "tokens") == 1_000 - used
    assert await left(proxy, "requests") == (9 if used else 10)


async def test_each_doubtful_try_counts(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    upstream.script({"cut_after": 1}, {"status": 503}, {"cut_after": 1}, {"text": "a b c"})
    proxy = await make_proxy(**limits(tokens_per_min=1_000))
    assert (await ask(proxy))[0] is None
    assert await left(proxy, "tokens") == 1_000 - (1 + 3) - 2 * 5


async def test_a_caller_that_leaves_is_settled_and_its_place_is_free(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.default(chunk_ms=50, text="word " * 200)
    proxy = await make_proxy(**limits(concurrent=1, tokens_per_min=1_000))
    stream = proxy.open("hi", max_output_tokens=CAP)
    async for event in stream:
        if event.WhichOneof("event") == "delta":
            break
    error, _ = await ask(proxy)
    assert error.remote_reason == "RATE_LIMITED"
    assert error.retry_after_ms == 1_000
    stream.cancel()
    await asyncio.to_thread(upstream.wait_outcome, "disconnected", within_s=5)
    assert 1_000 - 60 < await left(proxy, "tokens") < 1_000 - 5


async def test_money_of_the_day(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    upstream.default(text="word " * 95)
    # Worst case of a call: 5 x 1 + 95 x 4 = 385 micro USD; it costs 1 + 95 x 4 = 381.
    proxy = await make_proxy(**limits(usd_per_day=0.001))
    for money in (615, 234):
        error, told = await ask(proxy)
        assert error is None
        assert told == {"usd-micro": str(money)}
    error, told = await ask(proxy)
    assert (error.remote_reason, error.remote_retryable) == ("BUDGET_SPENT", False)
    assert told == {"usd-micro": "238"}
    assert 1_000 < error.retry_after_ms <= 86_400_000


async def test_other_tenants_have_their_own(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.default(text="a")
    settings = {"tenant": {"requests_per_min": 1}, "tenants": {"big": {"requests_per_min": 2}}}
    proxy = await make_proxy(limits=settings)
    served = {}
    for tenant in ("acme", "other", "big"):
        metadata = proxy.metadata(tenant)
        answers = [await ask(proxy, metadata=metadata) for _ in range(3)]
        served[tenant] = sum(error is None for error, _ in answers)
    assert served == {"acme": 1, "other": 1, "big": 2}
