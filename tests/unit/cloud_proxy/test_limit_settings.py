"""Settings of limits and prices, and the parts that they make."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from services.cloud_proxy.limits.fallback import FallbackStore
from services.cloud_proxy.limits.memory import MemoryStore
from services.cloud_proxy.limits.settings import (
    LimitsSettings,
    PriceSettings,
    make_store,
    price_table,
)
from services.cloud_proxy.policy.cost import Prices
from services.cloud_proxy.policy.limits import DAY_MS, Granted, Limits, Want
from services.common.errors import ConfigInvalid
from services.common.rpc.call import Principal
from services.common.settings import validate


def limits(**data: Any) -> LimitsSettings:
    return validate(LimitsSettings, data, "cloud.yaml")


def price(**changes: Any) -> PriceSettings:
    base = {"model": "m", "from": "2026-01-01", "input_usd_per_million": 1}
    return validate(PriceSettings, {**base, "output_usd_per_million": 2, **changes}, "cloud.yaml")


def test_a_caller_falls_under_its_tenants_limits_and_its_keys() -> None:
    book = limits(
        tenant={"tokens_per_min": 5},
        tenants={"big": {"tokens_per_min": 50, "usd_per_day": 1.5}, "free": {}},
        keys={"ci": {"concurrent": 1}},
    ).book()
    small, big = Limits(tokens_per_min=5), Limits(tokens_per_min=50, micro_usd_per_day=1_500_000)
    one = Limits(concurrent=1)
    assert book.of(Principal("r", "acme")) == {"tenant": small}
    assert book.of(Principal("r", "acme", key="web")) == {"tenant": small}
    assert book.of(Principal("r", "big", key="ci")) == {"tenant": big, "key:ci": one}
    assert book.of(Principal("r", "free")) == {}
    assert book.has_budget()
    assert not limits().book().has_budget()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"tenant": {"tokens_per_min": -1}}, "tokens_per_min"),
        ({"tenant": {"tokens_per_hour": 1}}, "tokens_per_hour"),
        ({"on_store_down": "hope"}, "on_store_down"),
        ({"redis": {"timeout_ms": 0}}, "timeout_ms"),
    ],
)
def test_bad_limits(data: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigInvalid, match=words):
        limits(**data)


async def test_the_store_that_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TANDEM_REDIS_URL", raising=False)
    assert isinstance(make_store(limits(), 1), MemoryStore)
    with pytest.raises(ConfigInvalid, match="replicas"):
        make_store(limits(), 2)
    monkeypatch.setenv("TANDEM_REDIS_URL", "http://user:hunter2@127.0.0.1/")
    with pytest.raises(ConfigInvalid) as caught:
        make_store(limits(), 2)
    assert "hunter2" not in caught.value.message
    (tmp_path / "url").write_text("redis://127.0.0.1:1/0\n")
    store = make_store(limits(redis={"url_file": str(tmp_path / "url")}), 2)
    assert isinstance(store, FallbackStore)
    await store.close()


def test_prices_of_a_model() -> None:
    prices = [price(), price(**{"from": "2026-06-01"}, cached_input_usd_per_million=0.5)]
    table = price_table(prices, "m", needed=True)
    assert {p.prices for p in table.periods} == {Prices(1, 1, 2), Prices(1, 0.5, 2)}
    assert price_table(prices, "other", needed=False).periods == ()
    with pytest.raises(ConfigInvalid, match="other"):
        price_table(prices, "other", needed=True)
    with pytest.raises(ConfigInvalid, match="from"):
        price_table([price(), price()], "m", needed=False)
    with pytest.raises(ConfigInvalid, match="today"):
        price_table([price(**{"from": "2999-01-01"})], "m", needed=True)


@pytest.mark.parametrize(
    "changes", [{"from": "soon"}, {"input_usd_per_million": -1}, {"model": ""}, {"valid_from": 1}]
)
def test_bad_prices(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid):
        price(**changes)


async def test_callers_that_left_take_no_memory() -> None:
    now = int(time.time() * 1000)
    store = MemoryStore(lambda: now)
    scopes = {"key:a": Limits(requests_per_min=1, micro_usd_per_day=10)}
    assert isinstance(await store.reserve("t", scopes, Want("a", 1, 0, 100)), Granted)
    now += 3 * DAY_MS
    await store.reserve("t", {"key:b": Limits(requests_per_min=1)}, Want("b", 1, 0, 100))
    assert set(store._usages) == {("t", "key:b")}
