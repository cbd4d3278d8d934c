"""Money and estimates."""

from __future__ import annotations

from datetime import UTC, date, datetime

from services.cloud_proxy.policy.cost import (
    PricePeriod,
    Prices,
    PriceTable,
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


def test_the_latest_price_that_has_begun_is_in_force() -> None:
    old, new = Prices(1.0, 1.0, 1.0), Prices(2.0, 2.0, 2.0)
    table = PriceTable((PricePeriod(date(2026, 7, 1), new), PricePeriod(date(2026, 1, 1), old)))

    def at(when: str) -> Prices | None:
        return table.find(datetime.fromisoformat(when).replace(tzinfo=UTC).timestamp())

    assert at("2025-12-31T23:59:59") is None
    assert at("2026-01-01T00:00:00") == old
    assert at("2026-06-30T23:59:59") == old
    assert at("2026-07-01T00:00:00") == new
    assert PriceTable.always(old).at(0.0) == old
    assert PriceTable().at(0.0) == Prices()
