"""Numbers of a text in comparable form: digits, English words, Chinese numerals. Pure."""

from __future__ import annotations

import re
from collections import Counter

from services.common.similarity.lexicon import ENGLISH_NUMBERS, NOT_NUMBERS_ZH, SCALES

_DIGITS = dict(zip("零〇一二三四五六七八九", (0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), strict=True)) | {
    "两": 2,
    "俩": 2,
}
_PLACES = {"十": 10, "百": 100, "千": 1_000}
_GROUPS = {"万": 10_000, "亿": 100_000_000}
_HARMLESS = re.compile("|".join(NOT_NUMBERS_ZH))
# Digits with separators, glued letters too (a12, v2, 3d): all of them tell things apart.
_NUMERIC = re.compile(
    r"(?P<digits>\d+(?:[.,:/-]\d+)*)\s*(?P<scale>[千万亿]|[kmb](?![a-z])|bn\b|thousand|million|billion)?"
    r"|(?P<chinese>[零〇一二三四五六七八九十百千万亿两俩]+)"
    r"|(?P<english>[a-z]+)"
)
_ZH_SCALES = {"千": 1_000, "万": 10_000, "亿": 100_000_000, "b": 1_000_000_000}


def numbers_of(text: str) -> Counter[str]:
    """Every number of a normalized text, canonical: 3, 三, three and 3.0 are the same."""
    found: Counter[str] = Counter()
    pending: float | None = None
    for match in _NUMERIC.finditer(_HARMLESS.sub(" ", text)):
        word = match["english"]
        if word in SCALES and pending is not None and len(word) > 2:
            pending *= SCALES[word]
            continue
        if word in ENGLISH_NUMBERS:
            value = ENGLISH_NUMBERS[word]
            joined = pending is not None and pending >= 20 and pending % 10 == 0 and value < 10
            if pending is not None and not joined:
                found[_canonical(pending)] += 1
                pending = None
            pending = value + (pending or 0)
            continue
        if pending is not None and word != "and":
            found[_canonical(pending)] += 1
            pending = None
        if match["digits"]:
            found[_digits(match["digits"], match["scale"])] += 1
        elif match["chinese"]:
            found[_canonical(_chinese(match["chinese"]))] += 1
    if pending is not None:
        found[_canonical(pending)] += 1
    return found


def same_numbers(a: str, b: str) -> bool:
    """Both texts name the same numbers. A lone `one` against none is no difference."""
    left, right = numbers_of(a), numbers_of(b)
    only = (left - right) + (right - left)
    if set(only) <= {"1"}:
        # "one way" against "a way"; one against another number is caught, for that stays over.
        return True
    return not only


def _digits(text: str, scale: str | None) -> str:
    plain = text.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text) else text
    if not re.fullmatch(r"\d+(\.\d+)?", plain):
        return plain.replace("/", "-").replace(",", "-")
    value = float(plain)
    if scale:
        value *= _ZH_SCALES.get(scale) or SCALES[scale]
    elif plain.startswith("0") and plain.isdigit() and len(plain) > 1:
        return plain
    return _canonical(value)


def _canonical(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _chinese(text: str) -> float:
    """Value of a run of numerals; digits in a row are read one by one (二〇二四)."""
    if not any(char in _PLACES or char in _GROUPS for char in text):
        return float("".join(str(_DIGITS[char]) for char in text))
    total = group = digit = 0
    for char in text:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char in _PLACES:
            group += (digit or 1) * _PLACES[char]
            digit = 0
        else:
            total += (group + digit or 1) * _GROUPS[char]
            group = digit = 0
    return float(total + group + digit)
