"""Maps from score to probability."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.confidence.calibrator import Identity, Isotonic, logistic
from services.common.confidence.features import FEATURES
from services.common.confidence.learned import LearnedScorer

N = len(FEATURES)


def test_isotonic_is_linear_between_points_and_flat_outside() -> None:
    curve = Isotonic((0.2, 0.6), (0.1, 0.9))
    assert curve.probability(0.0) == 0.1
    assert math.isclose(curve.probability(0.4), 0.5)
    assert curve.probability(0.6) == curve.probability(7.0) == 0.9


@given(st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_isotonic_never_falls(scores: list[float]) -> None:
    curve = Isotonic((0.1, 0.5, 0.7), (0.0, 0.3, 1.0))
    low, high = sorted(scores)
    assert curve.probability(low) <= curve.probability(high)


@pytest.mark.parametrize(
    ("scores", "values"),
    [
        ((), ()),
        ((0.1,), (0.1, 0.2)),
        ((0.2, 0.1), (0.1, 0.2)),
        ((0.1, 0.2), (0.2, 0.1)),
        ((0.1,), (1.5,)),
    ],
)
def test_a_map_that_falls_or_leaves_the_range_is_refused(
    scores: tuple[float, ...], values: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match="isotonic map"):
        Isotonic(scores, values)


def test_identity_stays_in_range() -> None:
    assert [Identity().probability(score) for score in (-1.0, 0.3, 2.0)] == [0.0, 0.3, 1.0]


def test_logistic_does_not_overflow() -> None:
    assert (logistic(-1e4), logistic(0.0), logistic(1e4)) == (0.0, 0.5, 1.0)


def test_a_scorer_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="needs 16 weights"):
        LearnedScorer((0.0,) * N, (1.0,) * N, (0.0,), 0.0)
    with pytest.raises(ValueError, match="above 0"):
        LearnedScorer((0.0,) * N, (0.0,) * N, (0.0,) * N, 0.0)


def test_a_scorer_weighs_standardized_features() -> None:
    scorer = LearnedScorer((1.0,) * N, (2.0,) * N, (0.0,) * (N - 1) + (3.0,), 0.5)
    assert scorer.log_odds([0.0] * (N - 1) + [5.0]) == 0.5 + 3.0 * (5.0 - 1.0) / 2.0
