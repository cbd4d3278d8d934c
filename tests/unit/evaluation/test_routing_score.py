"""APGR and CPT by their definition: ties, traps and extremes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.routing_score import NoGain, curve_of

GAINS = st.lists(st.sampled_from([-1, 0, 1]), min_size=2, max_size=12).filter(lambda g: sum(g) > 0)


def test_a_perfect_order_and_its_reverse() -> None:
    # Two of four prompts gain. Best order: PGR 1/2 at 1/4, 1 from 1/2 on.
    best = curve_of([4, 3, 2, 1], [1, 1, 0, 0])
    assert best.apgr == pytest.approx((0.25 + 0.75 + 1 + 1) / 4)
    assert best.cpt(0.5) == pytest.approx(0.25)
    assert best.cpt(0.8) == pytest.approx(0.4)
    worst = curve_of([1, 2, 3, 4], [1, 1, 0, 0])
    assert worst.apgr == pytest.approx(1 - best.apgr)
    assert worst.cpt(0.5) == pytest.approx(0.75)


def test_equal_scores_are_a_random_order() -> None:
    constant = curve_of([7, 7, 7, 7], [1, -1, 0, 1])
    assert constant.apgr == pytest.approx(0.5)
    assert constant.cpt(0.8) == pytest.approx(0.8)
    # The group in the middle is a straight line from 1/4 to 3/4 of the calls.
    grouped = curve_of([3, 2, 2, 1], [1, 0, 1, 0])
    assert grouped.apgr == pytest.approx((0.25 + 2 * 0.75 + 1) / 4)
    assert grouped.cpt(0.75) == pytest.approx(0.5)


def test_losses_bend_the_curve_above_one() -> None:
    # What only the weak model answers is kept from the strong one: PGR over 1 on the way.
    curve = curve_of([3, 2, 1], [1, 1, -1])
    assert curve.pgr.tolist() == [0, 1, 2, 1]
    assert curve.cpt(1.0) == pytest.approx(1 / 3)


def test_without_gain_there_is_no_figure() -> None:
    with pytest.raises(NoGain):
        curve_of([1, 2], [1, -1])


@given(gains=GAINS.filter(lambda gains: len(gains) <= 5), data=st.data())
def test_ties_equal_the_mean_over_all_orders(gains: list[int], data: st.DataObject) -> None:
    count = len(gains)
    scores = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    orders = [np.array(order) / (2 * count) for order in permutations(range(count))]
    mean = np.mean([curve_of(scores + order, gains).apgr for order in orders])
    assert curve_of(scores, gains).apgr == pytest.approx(mean)


@given(gains=GAINS, data=st.data())
def test_the_order_of_rows_and_the_scale_of_scores_do_not_matter(
    gains: list[int], data: st.DataObject
) -> None:
    scores = np.array(
        data.draw(st.lists(st.integers(0, 5), min_size=len(gains), max_size=len(gains)))
    )
    order = np.array(data.draw(st.permutations(range(len(gains)))))
    one = curve_of(scores, gains)
    other = curve_of(3 * scores[order] - 7, np.array(gains)[order])
    assert other.apgr == pytest.approx(one.apgr)
    assert other.cpt(0.5) == pytest.approx(one.cpt(0.5))
