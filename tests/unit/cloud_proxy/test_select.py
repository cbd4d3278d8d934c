"""Which provider is called next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cloud_proxy.policy.select import Offer, choose, final_error, is_providers_fault
from services.common.errors import (
    UpstreamBreakerOpen,
    UpstreamCut,
    UpstreamError,
    UpstreamMalformed,
    UpstreamMisconfigured,
    UpstreamOverloaded,
    UpstreamRefused,
    UpstreamStalled,
    UpstreamUnreachable,
)

offers = st.lists(st.builds(Offer, st.integers(0, 1_000), st.booleans()), max_size=8)
draws = st.floats(0, 1, exclude_max=True)


@given(offers, draws)
def test_only_usable_ones_and_one_whenever_there_is_one(some: list[Offer], draw: float) -> None:
    place = choose(some, draw=draw)
    if place is None:
        assert not any(offer.usable for offer in some)
    else:
        assert some[place].usable


@given(offers, draws)
def test_unweighted_ones_come_last_and_in_order(some: list[Offer], draw: float) -> None:
    place = choose(some, draw=draw)
    if place is not None and some[place].weight == 0:
        assert not any(offer.usable and offer.weight for offer in some)
        assert not any(offer.usable for offer in some[:place])


@given(st.lists(st.integers(0, 20), min_size=1, max_size=5).filter(any))
def test_shares_are_the_weights(weights: list[int]) -> None:
    total = sum(weights)
    picked = [
        choose([Offer(weight, usable=True) for weight in weights], draw=(mark + 0.5) / total)
        for mark in range(total)
    ]
    assert [picked.count(place) for place in range(len(weights))] == weights


@given(offers, draws)
def test_asking_on_reaches_everyone_once(some: list[Offer], draw: float) -> None:
    left, order = list(some), list[int]()
    while (place := choose(left, draw=draw)) is not None:
        order.append(place)
        left[place] = Offer(left[place].weight, usable=False)
    assert sorted(order) == [place for place, offer in enumerate(some) if offer.usable]


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        (UpstreamRefused, False),
        (UpstreamMisconfigured, True),
        (UpstreamOverloaded, True),
        (UpstreamStalled, True),
        (UpstreamCut, True),
        (UpstreamMalformed, True),
        (UpstreamUnreachable, True),
        (UpstreamError, True),
    ],
)
def test_whose_fault(kind: type[UpstreamError], counts: bool) -> None:
    assert is_providers_fault(kind("x")) is counts


def test_a_real_failure_is_told_before_an_open_breaker() -> None:
    cut, shut = UpstreamCut("x"), UpstreamBreakerOpen("x")
    assert final_error(None, shut) is shut
    assert final_error(cut, shut) is cut
    assert final_error(shut, cut) is cut
