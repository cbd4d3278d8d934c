"""Shapes and grams: the same for the same text, defined for any text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.complexity.grams import grams_of
from services.common.complexity.shape import COUNT, shape_of


@given(st.text(max_size=400))
def test_any_text_has_a_shape(text: str) -> None:
    shape = shape_of(text)
    assert shape.shape == (COUNT,)
    assert np.isfinite(shape).all()


def test_a_shape_sees_options_numbers_and_words() -> None:
    plain, choice = shape_of("Which is it?"), shape_of("Which is it?\nA. one\nB. three 3\nAnswer:")
    assert (plain[3], choice[3]) == (0, 2)
    assert shape_of("half of each 12 of 50")[8] == 4
    assert shape_of("每天走十公里，一共多少？").sum() > shape_of("天空").sum()


@pytest.mark.parametrize("number", ["9" * 400, "1,2,3", "1.2.3", "٣"])
def test_odd_numbers_are_no_error(number: str) -> None:
    assert np.isfinite(shape_of(f"count {number} now")).all()


@given(st.lists(st.integers(0, 128_000), max_size=60), st.integers(4, 18))
def test_grams_are_distinct_buckets_with_a_weight(pieces: list[int], bits: int) -> None:
    buckets, weights = grams_of(pieces, bits)
    assert len(set(buckets.tolist())) == len(buckets) == len(weights)
    assert all(0 <= bucket < 1 << bits for bucket in buckets)
    assert (weights >= 1).all()


def test_order_matters_to_grams() -> None:
    one, other = grams_of([1, 2, 3], 18)[0], grams_of([3, 2, 1], 18)[0]
    assert set(one.tolist()) != set(other.tolist())
