"""No guard may let a pair of the hard set through, whatever the cosine; like pairs pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.similarity.guards import GUARDS, forbidding, sharply_forbidding
from services.common.similarity.numbers import numbers_of
from services.common.similarity.words import common_places, normalize, words_of
from tests.unit.common.similarity.hard_pairs import ALIKE, hard_pairs

HARD = hard_pairs()
TEXTS = st.text(alphabet="abc XY12 不没开关从到三十?.-'", max_size=24)


def test_the_hard_set_is_large_and_in_both_languages() -> None:
    chinese = [pair for pair in HARD if any("\u4e00" <= char <= "\u9fff" for char in pair[0])]
    assert len(HARD) >= 200
    assert len(chinese) >= 60
    assert len(set(HARD)) == len(HARD)


def test_no_pair_of_the_hard_set_may_share_an_answer() -> None:
    let_through = [pair for pair in HARD if not forbidding(*pair)]
    assert let_through == []


def test_beside_a_verifier_most_of_the_hard_set_is_still_forbidden() -> None:
    left = [pair for pair in HARD if not sharply_forbidding(*pair)]
    # The rest, one noun for another, is the verifier's to tell.
    assert len(left) <= 30


@pytest.mark.parametrize(("a", "b"), ALIKE)
def test_the_same_question_in_other_words_passes(a: str, b: str) -> None:
    assert forbidding(a, b) == ""


@given(TEXTS, TEXTS)
def test_guards_do_not_depend_on_who_came_first(a: str, b: str) -> None:
    left, right = words_of(a), words_of(b)
    for name, guard in GUARDS.items():
        assert guard(left, right) == guard(right, left), name


@given(TEXTS)
def test_a_text_is_never_forbidden_to_itself(text: str) -> None:
    assert forbidding(text, text) == ""
    assert normalize(normalize(text)) == normalize(text)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("三十", "30"), ("两百五十", "250"), ("一万二千", "12000"), ("3万", "30000"),
        ("twenty five", "25"), ("two hundred", "200"), ("1,000", "1000"), ("5k", "5000"),
        ("二〇二四", "2024"), ("十五", "15"), ("3.0", "3"),
    ],
)  # fmt: skip
def test_the_same_number_in_other_forms(a: str, b: str) -> None:
    assert numbers_of(a) == numbers_of(b) != {}


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_common_places_are_common_and_in_order(a: list[str], b: list[str]) -> None:
    places = common_places(a, b)
    assert all(a[i] == b[j] for i, j in places)
    assert places == sorted(places)
    assert len({i for i, _ in places}) == len({j for _, j in places}) == len(places)
