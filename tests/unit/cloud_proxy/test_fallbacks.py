"""Breakers and fallbacks over fake providers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
import structlog.testing
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from services.cloud_proxy import breakers
from services.cloud_proxy.breakers import make_breaker
from services.cloud_proxy.policy.retry import RetryMode, RetryRule
from services.cloud_proxy.providers.base import Completion, Piece, Sink
from services.cloud_proxy.record import Progress, Recorder, TierFacts
from services.cloud_proxy.redaction.cleared import ClearedRequest
from services.cloud_proxy.redaction.gate import Gate, Rule
from services.cloud_proxy.route import Route
from services.cloud_proxy.upstream import Upstream
from services.common.breaker import BreakerSettings
from services.common.deadline import Budget
from services.common.errors import (
    DeadlineExceeded,
    TandemError,
    UpstreamBreakerOpen,
    UpstreamCut,
    UpstreamMisconfigured,
    UpstreamOverloaded,
    UpstreamRefused,
    UpstreamStalled,
)
from services.common.pii.detector import StructuredDetector
from services.common.telemetry import names
from tests.fakes.provider import FakeProvider, Turn
from tests.unit.cloud_proxy.requests import request
from tests.unit.cloud_proxy.test_upstream import FACTS

ONCE = BreakerSettings(min_calls=1, failure_share=0.2, cool_s=30.0)
LATER = BreakerSettings(min_calls=2, failure_share=0.2, cool_s=0.0)
NEVER = BreakerSettings(min_calls=100_000)
NO_RETRY = RetryRule(RetryMode.NONE)
DOWN = UpstreamOverloaded("x")


def route(
    name: str,
    *turns: Turn,
    breaker: BreakerSettings = NEVER,
    weight: int = 1,
    retry: RetryRule = NO_RETRY,
    provider: FakeProvider | None = None,
) -> Route:
    facts = replace(FACTS, provider=name, retry=retry)
    client = provider or FakeProvider(*turns)
    made = make_breaker(facts, breaker)
    return Route(facts, client, made, Recorder(), weight=weight, draw=lambda: 0.5)


async def ask(
    routes: Sequence[Route], *, budget_ms: int = 5_000, draw: float = 0.0
) -> tuple[list[str], Progress, list[str]]:
    """Texts, progress, and the providers that a request left for."""
    texts: list[str] = []
    told: list[str] = []
    progress = Progress()

    async def take(piece: Piece) -> None:
        texts.append(piece.text)

    def tell(facts: TierFacts) -> None:
        told.append(facts.provider)

    cleared = await Gate(StructuredDetector(), Rule.REFUSE).clear(request("hello there"))
    now = time.monotonic()
    budget = Budget(budget_ms, 0, now, now + budget_ms / 1000)
    upstream = Upstream(routes, draw=lambda: draw)
    await upstream.call(cleared.request, budget, progress, take, tell)
    return texts, progress, told


async def fails(kind: type[TandemError], routes: Sequence[Route], **kwargs: int) -> TandemError:
    with pytest.raises(kind) as caught:
        await ask(routes, **kwargs)
    assert type(caught.value) is kind
    return caught.value


async def test_an_open_breaker_fails_at_once_and_says_when() -> None:
    provider = FakeProvider(DOWN)
    one = [route("a", provider=provider, breaker=ONCE)]
    await fails(UpstreamOverloaded, one)
    error = await fails(UpstreamBreakerOpen, one)
    assert len(provider.requests) == 1
    assert error.retryable
    assert error.retry_after_ms is not None
    assert 20_000 < error.retry_after_ms <= 30_000


@pytest.mark.parametrize(
    "harmless", [UpstreamRefused("x"), DeadlineExceeded("x"), UpstreamRefused("y")]
)
async def test_what_is_not_the_providers_fault_never_counts(harmless: TandemError) -> None:
    one = [route("a", harmless, harmless, ["fine"], breaker=ONCE)]
    await fails(type(harmless), one)
    await fails(type(harmless), one)
    assert (await ask(one))[0] == ["fine"]


@pytest.mark.parametrize(
    "harm", [UpstreamMisconfigured("x"), DOWN, UpstreamStalled("x"), UpstreamCut("x")]
)
async def test_what_is_the_providers_fault_counts(harm: TandemError) -> None:
    one = [route("a", harm, breaker=ONCE)]
    await fails(type(harm), one)
    await fails(UpstreamBreakerOpen, one)


class Slow(FakeProvider):
    """Never answers."""

    async def generate(
        self, request: ClearedRequest, sink: Sink, *, expires_at: float
    ) -> Completion:
        await asyncio.sleep(60)
        return await super().generate(request, sink, expires_at=expires_at)


async def test_a_caller_that_leaves_never_counts() -> None:
    one = [route("a", provider=Slow(), breaker=ONCE)]
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(one), 0.01)
    assert one[0].usable()


async def test_a_probe_of_a_caller_that_leaves_gives_its_place_to_the_next() -> None:
    slow, good = Slow(DOWN), FakeProvider(["back"])
    shared = make_breaker(FACTS, LATER)
    routes = {name: Route(FACTS, p, shared, Recorder()) for name, p in (("s", slow), ("g", good))}
    for _ in range(2):
        permit = shared.admit(time.monotonic())
        assert permit is not None
        permit.failed(time.monotonic())
    assert shared.state == "open"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ask([routes["s"]]), 0.01)
    assert (await ask([routes["g"]]))[0] == ["back"]
    assert shared.state == "closed"


async def test_changes_are_logged_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("test")
    monkeypatch.setattr(breakers, "_changes", meter.create_counter(names.BREAKER_CHANGES))
    with structlog.testing.capture_logs() as logs:
        await fails(UpstreamOverloaded, [route("a", DOWN, breaker=ONCE)])
    told = {"tier": "small", "provider": "a", "before": "closed", "now": "open"}
    assert told.items() <= next(log for log in logs if log["event"] == "breaker").items()
    data = reader.get_metrics_data()
    assert data is not None
    (point,) = data.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points
    assert point.attributes == {
        names.TIER: "small",
        names.GEN_AI_PROVIDER: "a",
        names.BREAKER_STATE: "open",
    }


async def test_retries_end_where_the_breaker_opens_and_the_real_failure_is_told() -> None:
    provider = FakeProvider(DOWN, DOWN, DOWN, DOWN)
    backoff = RetryRule(RetryMode.BACKOFF, (2, 2, 2))
    settings = BreakerSettings(min_calls=2, cool_s=30.0)
    await fails(
        UpstreamOverloaded, [route("a", provider=provider, breaker=settings, retry=backoff)]
    )
    assert len(provider.requests) == 2


async def test_the_next_provider_is_asked_and_is_the_one_that_is_recorded() -> None:
    texts, progress, told = await ask([route("a", DOWN), route("b", ["from b"], weight=0)])
    assert texts == ["from b"]
    assert told == ["a", "b"]
    assert progress.facts is not None
    assert (progress.facts.provider, progress.tries) == ("b", 2)


async def test_weights_choose() -> None:
    for draw, expected in ((0.0, "a"), (0.7, "b")):
        pair = [route("a", ["x"]), route("b", ["x"])]
        assert (await ask(pair, draw=draw))[2] == [expected]


async def test_open_breakers_are_passed_over() -> None:
    shut = route("a", DOWN, breaker=ONCE)
    await fails(UpstreamOverloaded, [shut])
    _, progress, told = await ask([shut, route("b", ["x"])])
    assert (told, progress.tries) == (["b"], 1)


async def test_where_all_are_open_the_soonest_is_named() -> None:
    brief = BreakerSettings(min_calls=1, cool_s=5.0)
    pair = [route("a", DOWN, breaker=ONCE), route("b", DOWN, breaker=brief)]
    await fails(UpstreamOverloaded, pair)
    error = await fails(UpstreamBreakerOpen, pair)
    assert error.retry_after_ms is not None
    assert error.retry_after_ms <= 5_000


async def test_never_after_the_first_token() -> None:
    spare = FakeProvider(["x"])
    await fails(UpstreamCut, [route("a", ["words", UpstreamCut("x")]), route("b", provider=spare)])
    assert spare.requests == []


async def test_not_for_a_request_that_others_would_refuse_too() -> None:
    spare = FakeProvider(["x"])
    await fails(UpstreamRefused, [route("a", UpstreamRefused("x")), route("b", provider=spare)])
    assert spare.requests == []
    for other in (UpstreamMisconfigured("x"), DOWN):
        assert (await ask([route("a", other), route("b", ["x"])]))[2] == ["a", "b"]


async def test_not_beyond_the_budget() -> None:
    spare = FakeProvider(["x"])
    pair = [route("a", DOWN), route("b", provider=spare)]
    await fails(UpstreamOverloaded, pair, budget_ms=20)
    assert spare.requests == []
