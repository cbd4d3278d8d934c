"""Breakers and fallbacks, over a real server."""

from __future__ import annotations

from typing import Any

from tests.fakes.upstream_process import UpstreamProcess
from tests.integration.cloud_proxy.conftest import MakeProxy, tier
from tests.integration.cloud_proxy.test_failures import NO_RETRY, fails

SOON = {"min_calls": 2, "failure_share": 0.2, "cool_s": 0.3}
LONG = {"min_calls": 2, "failure_share": 0.2, "cool_s": 30}


def second(upstream: UpstreamProcess, **changes: Any) -> dict[str, Any]:
    return tier(upstream.base_url, provider="other", model="fake-large", **changes)


async def test_a_failing_provider_is_spared(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.default(status=500)
    proxy = await make_proxy(small={**NO_RETRY, "breaker": LONG})
    for _ in range(2):
        await fails(proxy)
    status, error, _ = await fails(proxy)
    assert (status.name, error.remote_reason) == ("UNAVAILABLE", "UPSTREAM_BREAKER_OPEN")
    assert error.remote_retryable
    assert 0 < error.retry_after_ms <= 30_000
    assert len(upstream.seen()) == 2
    # The other tier has a breaker of its own.
    upstream.default()
    assert (await proxy.collect("hi", tier=2)).text


async def test_a_probe_closes_it(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    upstream.default(status=401)
    proxy = await make_proxy(small={**NO_RETRY, "breaker": {**SOON, "cool_s": 0}})
    for _ in range(2):
        await fails(proxy)
    upstream.default(text="back again")
    assert (await proxy.collect("hi")).text == "back again"


async def test_refused_requests_never_open_it(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.default(status=400)
    proxy = await make_proxy(small={**NO_RETRY, "breaker": LONG})
    for _ in range(4):
        _, error, _ = await fails(proxy)
        assert error.remote_reason == "UPSTREAM_REFUSED"
    assert len(upstream.seen()) == 4


async def test_the_fallback_answers_and_is_named(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.script({"status": 503}, model="fake-small")
    proxy = await make_proxy(small={**NO_RETRY, "fallbacks": [second(upstream)]})
    answer = await proxy.collect("hi")
    assert (answer.started.provider, answer.started.model_id) == ("other", "fake-large")
    assert answer.started.provider_calls == 2
    assert answer.finished.usage.cost_micro_usd > 0


async def test_no_fallback_after_the_first_token(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.script({"text": "a b c d", "cut_after": 3}, model="fake-small")
    proxy = await make_proxy(small={**NO_RETRY, "fallbacks": [second(upstream)]})
    _, error, text = await fails(proxy)
    assert (error.remote_reason, text) == ("UPSTREAM_CUT", "a b")
    assert len(upstream.seen()) == 1


async def test_reserved_is_the_most_that_any_provider_may_take(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    limits = {"tenant": {"tokens_per_min": 500}}
    small = {"max_output_tokens": 10, "fallbacks": [second(upstream, max_output_tokens=5_000)]}
    _, error, _ = await fails(await make_proxy(small=small, limits=limits))
    assert error.remote_reason == "RATE_LIMITED"
    small["fallbacks"] = [second(upstream, max_output_tokens=20)]
    assert (await (await make_proxy(small=small, limits=limits)).collect("hi")).text
