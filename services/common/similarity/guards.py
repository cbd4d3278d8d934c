"""Guards: each says that two texts must not share an answer, however alike they look. Pure.

A guard errs towards forbidding: a miss costs one model call, a wrong hit a wrong answer. What
each costs in hits and saves in wrong ones: docs/benchmarks/cache.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from services.common.similarity.lexicon import (
    DIRECTION,
    NEGATIONS,
    NEGATIONS_ZH,
    NOT_NEGATIONS_ZH,
    STOP,
    STOP_ZH,
)
from services.common.similarity.marks import STRICT_KINDS, marks_of
from services.common.similarity.numbers import numbers_of, same_numbers
from services.common.similarity.words import Words, common_places, compare, is_cjk, words_of

_ASKS_BOTH_WAYS = re.compile(r"(.{1,2})[不没]\1|有没有|[没不否未](?=$|[吗呢啊])")
_HARMLESS_NEGATION = re.compile("|".join(NOT_NEGATIONS_ZH))
_EXTRA_CHARS = 2
# Of the words of direction those that hardly have another use.
_ORDERING: Final = DIRECTION - frozenset(
    ("over", "against", "before", "after", "between", "by", "of", "for")
)


def negation(a: Words, b: Words) -> bool:
    """One denies where the other does not."""
    return _negations(a.text) != _negations(b.text)


def opposites(a: Words, b: Words) -> bool:
    """A word of one pole stands here, one of the other there: open and close, 开 and 关."""
    left, right = marks_of(a.text), marks_of(b.text)
    only_a, only_b = left.poles - right.poles, right.poles - left.poles
    return any((pole, 1 - side) in only_b for pole, side in only_a)


def kinds(a: Words, b: Words) -> bool:
    """Different members of one kind: colours, months, units, countries, companies."""
    left, right = marks_of(a.text).kinds, marks_of(b.text).kinds
    rows_a, rows_b = {row for row, _ in left - right}, {row for row, _ in right - left}
    return bool(rows_a & rows_b) or any(STRICT_KINDS[row] for row in rows_a | rows_b)


def other_kind(a: Words, b: Words) -> bool:
    """As `kinds`, where each text names a member that the other does not."""
    left, right = marks_of(a.text).kinds, marks_of(b.text).kinds
    return bool({row for row, _ in left - right} & {row for row, _ in right - left})


def other_number(a: Words, b: Words) -> bool:
    """As `numbers`, where each text names a number that the other does not."""
    left, right = numbers_of(a.text), numbers_of(b.text)
    return bool(left - right) and bool(right - left)


def numbers(a: Words, b: Words) -> bool:
    """The numbers differ, in digits or in words."""
    return not same_numbers(a.text, b.text)


def names(a: Words, b: Words) -> bool:
    """A name, written with a capital, is missing in the other text."""
    missing = [name for name in a.names if not _has(b, name)]
    missing += [name for name in b.names if not _has(a, name)]
    return bool(missing)


def question(a: Words, b: Words) -> bool:
    """They ask for different kinds of thing: who, when, where, why, how much."""
    return _asked(a.text) != _asked(b.text)


def direction(a: Words, b: Words) -> bool:
    """The same things in another order: USD to EUR and EUR to USD, 从A到B and 从B到A."""
    units_a, units_b = content_units(a), content_units(b)
    common = len(units_a) - len(compare(units_a, units_b).only_a)
    moved = common - len(common_places(units_a, units_b))
    if not moved:
        return False
    if any(is_cjk(unit) for unit in units_a):
        ordered = bool(DIRECTION & set(a.units) & set(b.units))
        return ordered or moved * 2 >= common - 1
    return True


def other_direction(a: Words, b: Words) -> bool:
    """As `direction`, where both texts have a word that gives two things an order."""
    return direction(a, b) and bool(_ORDERING & set(a.units) & set(b.units))


def other_question(a: Words, b: Words) -> bool:
    """As `question`, where each text asks for a kind and they share none."""
    left, right = marks_of(a.text).questions, marks_of(b.text).questions
    return bool(left) and bool(right) and not left & right


def replaced(a: Words, b: Words) -> bool:
    """In the same frame, one word of substance stands in the place of another."""
    for here, there in compare(a.units, b.units).swaps:
        left, right = _substance(here), _substance(there)
        if left and right and not _alike(left, right):
            return True
    return False


def added(a: Words, b: Words) -> bool:
    """One says more of substance than the other."""
    difference = compare(a.units, b.units)
    return bool(
        _heavy(_substance(difference.only_a), b.text)
        or _heavy(_substance(difference.only_b), a.text)
    )


Guard = Callable[[Words, Words], bool]
GUARDS: Final[dict[str, Guard]] = {
    "negation": negation,
    "opposites": opposites,
    "kinds": kinds,
    "numbers": numbers,
    "names": names,
    "question": question,
    "direction": direction,
    "replaced": replaced,
    "added": added,
}

# Beside a verifier only these forbid: they hardly ever meet a true pair, and all others are
# among its figures.
SHARP_GUARDS: Final[dict[str, Guard]] = {
    "negation": negation,
    "opposites": opposites,
    "other_kind": other_kind,
    "other_number": other_number,
    "other_direction": other_direction,
    "other_question": other_question,
}


def sharply_forbidding(a: str, b: str) -> bool:
    """Whether one of `SHARP_GUARDS` forbids a shared answer."""
    left, right = words_of(a), words_of(b)
    return left.text != right.text and any(guard(left, right) for guard in SHARP_GUARDS.values())


def forbidding(a: str, b: str, guards: Iterable[str] = GUARDS) -> str:
    """Name of the first guard that forbids a shared answer; empty where none does."""
    left, right = words_of(a), words_of(b)
    if left.text == right.text:
        return ""
    return next((name for name in guards if GUARDS[name](left, right)), "")


def _negations(text: str) -> int:
    english = sum(
        word in NEGATIONS or word.endswith("n't") for word in re.findall(r"[a-z']+", text)
    )
    plain = _ASKS_BOTH_WAYS.sub("", _HARMLESS_NEGATION.sub("", text))
    return int(english + sum(plain.count(mark) for mark in NEGATIONS_ZH))


def _asked(text: str) -> frozenset[str]:
    return marks_of(text).questions


def _has(words: Words, name: str) -> bool:
    return name in words.units or name in words.text


def content_units(words: Words) -> list[str]:
    """Units of substance in order, English ones without their inflection."""
    return [_stem(unit) for unit in words.units if not _is_stop(unit)]


def _substance(run: tuple[str, ...]) -> list[str]:
    return [_stem(unit) for unit in run if not _is_stop(unit)]


def _alike(left: list[str], right: list[str]) -> bool:
    return "".join(left) == "".join(right)


def _heavy(units: list[str], other: str) -> bool:
    """More than the other text says in other words: a word, or two Chinese characters."""
    latin = [unit for unit in units if not is_cjk(unit) and unit not in other]
    return bool(latin) or sum(is_cjk(unit) for unit in units) >= _EXTRA_CHARS


@lru_cache(maxsize=8_192)
def _is_stop(unit: str) -> bool:
    """Without substance, or a number, which has a guard of its own."""
    if unit in STOP or unit in STOP_ZH or not any(char.isalnum() for char in unit):
        return True
    return bool(numbers_of(unit))


@lru_cache(maxsize=8_192)
def _stem(word: str) -> str:
    """Endings of English inflection taken off, crudely, so that forms of a word are equal."""
    if not word.isascii() or len(word) < 4:
        return word
    word = word.removesuffix("'s")
    for ending, replacement in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(ending) + replacement
            break
    return word.removesuffix("e")
