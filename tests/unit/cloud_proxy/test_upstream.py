"""Tries, retries and accounting over a fake provider."""

from __future__ import annotations

import time

import pytest

from services.cloud_proxy.breakers import make_breaker
from services.cloud_proxy.policy.cost import Prices, PriceTable
from services.cloud_proxy.policy.retry import RetryMode, RetryRule
from services.cloud_proxy.providers.base import Completion, Piece
from services.cloud_proxy.record import Progress, Recorder, TierFacts
from services.cloud_proxy.redaction.gate import Gate, Rule
from services.cloud_proxy.request import Tier
from services.cloud_proxy.route import Route
from services.common.breaker import BreakerSettings
from services.common.deadline import Budget
from services.common.errors import (
    DeadlineExceeded,
    UpstreamCut,
    UpstreamOverloaded,
    UpstreamRefused,
    UpstreamStalled,
)
from services.common.pii.detector import StructuredDetector
from tests.fakes.provider import FakeProvider, Turn
from tests.unit.cloud_proxy.requests import request

FACTS = TierFacts(
    tier=Tier.SMALL,
    provider="fake",
    model="fake-1",
    standin=False,
    prices=PriceTable.always(Prices(input_usd=1.0, cached_input_usd=1.0, output_usd=2.0)),
    retry=RetryRule(RetryMode.BACKOFF, (2, 2, 2)),
)


def ignore(_: TierFacts) -> None:
    """Nobody needs telling."""


async def call(*turns: Turn, budget_ms: int = 5_000) -> tuple[Completion, Progress, list[str]]:
    progress = Progress()
    return await _call(progress, *turns, budget_ms=budget_ms)


async def _call(
    progress: Progress, *turns: Turn, budget_ms: int = 5_000
) -> tuple[Completion, Progress, list[str]]:
    texts: list[str] = []

    async def take(piece: Piece) -> None:
        texts.append(piece.text)

    cleared = await Gate(StructuredDetector(), Rule.REFUSE).clear(request("hello there"))
    breaker = make_breaker(FACTS, BreakerSettings())
    route = Route(FACTS, FakeProvider(*turns), breaker, Recorder(), draw=lambda: 0.5)
    now = time.monotonic()
    budget = Budget(budget_ms, 0, now, now + budget_ms / 1000)
    return await route.call(cleared.request, budget, progress, take, ignore), progress, texts


async def test_failures_before_the_first_token_are_tried_again() -> None:
    _, progress, texts = await call(
        UpstreamOverloaded("x"), UpstreamCut("x"), UpstreamStalled("x"), ["a", "b"]
    )
    assert texts == ["a", "b"]
    assert progress.tries == 4
    assert progress.possibly_billed


async def test_the_last_error_is_raised_when_tries_run_out() -> None:
    with pytest.raises(UpstreamOverloaded):
        await call(*[UpstreamOverloaded("x")] * 4)


async def test_no_try_after_the_first_token_and_a_cut_answer_is_counted() -> None:
    progress = Progress()
    with pytest.raises(UpstreamCut):
        await _call(progress, ["some words", UpstreamCut("x")])
    assert progress.tries == 1
    assert progress.tokens.estimated
    assert progress.tokens.output > 0
    assert progress.cost_micro_usd > 0
    assert progress.possibly_billed


async def test_refusals_and_ended_budgets_are_final() -> None:
    for error in (UpstreamRefused("x"), DeadlineExceeded("x")):
        progress = Progress()
        with pytest.raises(type(error)):
            await _call(progress, error)
        assert progress.tries == 1
        assert progress.cost_micro_usd == 0


async def test_a_wait_longer_than_the_budget_is_not_begun() -> None:
    began = time.monotonic()
    with pytest.raises(UpstreamOverloaded):
        await call(UpstreamOverloaded("x", retry_after_ms=60_000), ["a"])
    assert time.monotonic() - began < 2.0
