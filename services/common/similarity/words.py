"""Texts as comparable units: English words, numbers, single Chinese characters. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_UNIT = re.compile(
    r"[a-z]+(?:'[a-z]+)?|\d+(?:[.,:]\d+)*%?|[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    r"|[^\W\d_a-z\u3400-\u9fff]+|[$€£¥<>=+*/-]"
)
_CAPITAL = re.compile(r"(?<![\w'])[A-Z][\w'-]*")
_NO_NAMES = frozenset({"i", "i'm", "i've", "i'd", "i'll"})
_SENTENCE_START = re.compile(r"(?:^|[.?!:;\"“(]\s*)$")
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-") | dict.fromkeys("‘’‛`´", "'"))
_SPACES = re.compile(r"\s+")
_END_MARKS = " \t.?!。？！~…"


@dataclass(frozen=True, slots=True)
class Words:
    """A text in the forms that guards and features compare.

    Attributes:
        text: Normalized: NFKC, lower case, single spaces, without marks at the end.
        units: Words, numbers and Chinese characters in order.
        names: Words that were written with a capital inside a sentence, in lower case.
    """

    text: str
    units: tuple[str, ...]
    names: frozenset[str]


def normalize(text: str) -> str:
    """The form in which equal questions are equal: NFKC, lower case, no marks at the end."""
    plain = unicodedata.normalize("NFKC", text).translate(_DASHES)
    return _SPACES.sub(" ", plain).strip().rstrip(_END_MARKS).lower()


@lru_cache(maxsize=8_192)
def words_of(text: str) -> Words:
    """Reads a text once; the same text is often compared with several others."""
    plain = normalize(text)
    return Words(plain, tuple(_UNIT.findall(plain)), _names(text))


def is_cjk(unit: str) -> bool:
    """A Chinese character."""
    return "\u3400" <= unit[0] <= "\u9fff" or unit[0] >= "\U00020000"


def _names(text: str) -> frozenset[str]:
    """Capitalized words that do not begin a sentence; none where every word is capitalized."""
    text = unicodedata.normalize("NFKC", text).translate(_DASHES)
    found = [m for m in _CAPITAL.finditer(text) if not _SENTENCE_START.search(text[: m.start()])]
    words = re.findall(r"[A-Za-z][\w'-]*", text)
    if len(words) > 3 and len(found) >= len(words) - 1:
        return frozenset()
    names = {m.group().lower().removesuffix("'s") for m in found}
    return frozenset(names - _NO_NAMES)


@dataclass(frozen=True, slots=True)
class Difference:
    """What two texts do not share, and where it stands.

    Attributes:
        only_a: Units of `a` without a partner in `b`, in order.
        swaps: Pairs of runs that replace each other at the same place; either may be empty.
    """

    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    swaps: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


def compare(a: Sequence[str], b: Sequence[str]) -> Difference:
    """Aligns two unit sequences by their longest common subsequence."""
    only_a, only_b = _without(a, b), _without(b, a)
    return Difference(only_a, only_b, _swaps(a, b))


def _without(units: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Multiset difference that keeps the order."""
    left: dict[str, int] = {}
    for unit in others:
        left[unit] = left.get(unit, 0) + 1
    kept: list[str] = []
    for unit in units:
        if left.get(unit, 0):
            left[unit] -= 1
        else:
            kept.append(unit)
    return tuple(kept)


def _swaps(
    a: Sequence[str], b: Sequence[str]
) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    runs: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    at_a = at_b = 0
    for next_a, next_b in [*common_places(a, b), (len(a), len(b))]:
        if next_a > at_a or next_b > at_b:
            runs.append((tuple(a[at_a:next_a]), tuple(b[at_b:next_b])))
        at_a, at_b = next_a + 1, next_b + 1
    return tuple(runs)


def common_places(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Places of a longest common subsequence, as (place in a, place in b).

    Of several, the same one is taken whichever text comes first.
    """
    if tuple(a) > tuple(b):
        return [(i, j) for j, i in common_places(b, a)]
    a, b = a[:_MOST_UNITS], b[:_MOST_UNITS]
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        row, below, unit = table[i], table[i + 1], a[i]
        for j in range(len(b) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if unit == b[j] else max(below[j], row[j + 1])
    places: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            places.append((i, j))
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1
    return places


# Longer texts are compared by their beginning here; every other check sees all of them.
_MOST_UNITS = 96
