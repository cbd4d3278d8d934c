"""Counting equal samples, and the features made of them."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from services.common.confidence.agreement import agreement
from services.common.confidence.features import FEATURES, features

ANSWERS = st.lists(st.one_of(st.none(), st.sampled_from(["1", "2", "three", ""])), max_size=12)


def test_the_most_frequent_answer_is_taken() -> None:
    found = agreement(["18", "20", "18", None, "18", "20"])
    assert (found.answer, found.votes, found.runner_up, found.distinct) == ("18", 3, 2, 2)
    assert (found.unreadable, found.share) == (1, 0.5)
    assert math.isclose(found.margin, 1 / 6)
    assert found.halves == (2 / 3, 1 / 3)


def test_nothing_readable_is_no_answer() -> None:
    found = agreement([None, None])
    assert (found.answer, found.votes, found.share, found.unreadable) == ("", 0, 0.0, 2)
    assert agreement([]).share == 0.0


def test_entropy_is_that_of_the_readable_answers() -> None:
    assert agreement(["a", "a"]).entropy == 0.0
    assert math.isclose(agreement(["a", "b", None]).entropy, math.log(2))


@given(ANSWERS)
def test_shares_stay_shares(answers: list[str | None]) -> None:
    found = agreement(answers)
    assert 0 <= found.margin <= found.share <= 1
    assert found.votes + found.runner_up + found.unreadable <= found.samples


@given(st.text(max_size=80), ANSWERS)
def test_every_feature_is_a_finite_number(question: str, answers: list[str | None]) -> None:
    row = features(question, agreement(answers))
    assert len(row) == len(FEATURES)
    assert all(math.isfinite(value) for value in row)


def test_an_answer_that_repeats_a_figure_of_the_question_is_seen() -> None:
    def repeated(question: str, answer: str) -> float:
        return features(question, agreement([answer]))[FEATURES.index("answer_in_question")]

    assert repeated("She pays $1,200.50 for 3 hats", "1200.5") == 1.0
    assert repeated("She pays 12 for 3 hats", "4.0") == 0.0
