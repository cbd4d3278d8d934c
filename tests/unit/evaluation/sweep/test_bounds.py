"""p-values are p-values: a false target is called shown no more often than was said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from evaluation.sweep.bounds import (
    binomial_p,
    hoeffding_bentkus_p,
    lower_share,
    raised_target,
    rows_needed,
    upper_mean,
    upper_share,
)


@given(st.integers(1, 120), st.floats(0.05, 0.99), st.floats(0.005, 0.4))
def test_at_the_target_itself_it_is_shown_at_most_delta_often(
    rows: int, target: float, delta: float
) -> None:
    every = range(rows + 1)
    exact = [binomial_p(right, rows, target) for right in every]
    means = [hoeffding_bentkus_p(right / rows, rows, target) for right in every]
    for found in (exact, means):
        shown = [right for right in every if found[right] <= delta]
        assert binom.pmf(shown, rows, target).sum() <= delta + 1e-9


@given(st.integers(1, 200), st.integers(0, 200), st.floats(0.01, 0.3))
def test_bounds_agree_with_the_test(rows: int, right: int, delta: float) -> None:
    right = min(right, rows)
    low, high = lower_share(right, rows, delta), upper_share(right, rows, delta)
    assert low <= right / rows <= high
    if right:
        assert binomial_p(right, rows, low) == pytest.approx(delta, rel=1e-4)
    assert upper_mean(1 - right / rows, rows, delta) >= 1 - right / rows


def test_rows_needed_is_the_least_that_can_show_it() -> None:
    needed = rows_needed(0.95, 0.05)
    assert needed == 59
    assert binomial_p(needed, needed, 0.95) <= 0.05 < binomial_p(needed - 1, needed - 1, 0.95)


def test_what_further_rows_show_is_the_target() -> None:
    raised = raised_target(0.8, 50, 0.05)
    drawn = np.random.default_rng(0).binomial(50, raised, 100_000) / 50
    assert 0.8 < raised < 0.95
    assert (drawn < 0.8).mean() <= 0.052


def test_nothing_is_shown_by_nothing() -> None:
    assert binomial_p(0, 0, 0.5) == hoeffding_bentkus_p(0.0, 0, 0.5) == 1.0
