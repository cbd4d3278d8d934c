"""Money and estimates."""

from __future__ import annotations

from services.cloud_proxy.policy.cost import (
    Prices,
    Tokens,
    cost_micro_usd,
    estimate_prompt,
    estimate_tokens,
)


def test_cost_is_in_millionths_of_a_dollar() -> None:
    prices = Prices(input_usd=2.5, cached_input_usd=1.25, output_usd=10.0)
    assert cost_micro_usd(Tokens(1_000, 0, 100), prices) == 2_500 + 1_000
    assert cost_micro_usd(Tokens(1_000, 400, 100), prices) == 1_500 + 500 + 1_000
    assert cost_micro_usd(Tokens(), prices) == 0


def test_more_cached_than_read_costs_nothing_negative() -> None:
    assert cost_micro_usd(Tokens(10, 50, 0), Prices(1.0, 0.0, 1.0)) == 0


def test_estimates_grow_with_the_text() -> None:
    assert estimate_tokens([]) == estimate_tokens([""]) == 0
    assert estimate_tokens(["hi"]) == 1
    assert estimate_tokens(["今天天气很好"]) >= 6
    assert 90 <= estimate_tokens(["word " * 80]) <= 130
    assert estimate_prompt(["hi"], 3) == estimate_tokens(["hi"]) + 12
