"""Hold, commit, provisional: what is shown when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.vocabulary import StreamMode
from services.router.policy.release import Release, whole_sentences


def feed(release: Release, *pieces: str) -> list[str]:
    return [release.feed(piece, 1) for piece in pieces]


def test_hold_shows_nothing_before_acceptance() -> None:
    release = Release(StreamMode.HOLD, commit_tokens=2)
    assert feed(release, "One. ", "Two. ", "Three. ") == ["", "", ""]
    assert not release.committed
    assert release.accept() == "One. Two. Three. "


def test_commit_waits_for_the_first_whole_sentence() -> None:
    release = Release(StreamMode.COMMIT, commit_tokens=120)
    assert feed(release, "Rome", " is 3.14", " big.", " It") == ["", "", "", "Rome is 3.14 big. It"]
    assert release.committed
    assert feed(release, " has") == [" has"]


def test_commit_goes_by_tokens_where_no_sentence_ends() -> None:
    release = Release(StreamMode.COMMIT, commit_tokens=3)
    assert feed(release, "a", "b", "c") == ["", "", "abc"]


def test_a_chinese_sentence_ends_at_its_mark() -> None:
    release = Release(StreamMode.COMMIT, commit_tokens=120)
    assert feed(release, "你好", "。") == ["", "你好。"]


def test_leading_blank_lines_commit_nothing() -> None:
    release = Release(StreamMode.COMMIT, commit_tokens=120)
    assert feed(release, "\n", "\n") == ["", ""]


def test_provisional_shows_at_once_and_is_not_committed() -> None:
    release = Release(StreamMode.PROVISIONAL, commit_tokens=120)
    assert feed(release, "a", "b") == ["a", "b"]
    assert not release.committed


@given(
    pieces=st.lists(st.text(max_size=8), max_size=30),
    mode=st.sampled_from(list(StreamMode)),
    commit_tokens=st.integers(1, 40),
)
def test_what_is_shown_adds_up_to_the_text(
    pieces: list[str], mode: StreamMode, commit_tokens: int
) -> None:
    release = Release(mode, commit_tokens)
    shown = "".join(feed(release, *pieces)) + release.accept()
    assert shown == "".join(pieces)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("One. Two", "One."),
        ("One. Two.", "One. Two."),
        ("no end", ""),
        ("一。二", "一。"),
        ("", ""),
    ],
)
def test_whole_sentences(text: str, whole: str) -> None:
    assert whole_sentences(text) == whole


def test_the_stricter_mode_wins() -> None:
    assert StreamMode.COMMIT.stricter(StreamMode.HOLD) is StreamMode.HOLD
    assert StreamMode.COMMIT.stricter(StreamMode.PROVISIONAL) is StreamMode.COMMIT
