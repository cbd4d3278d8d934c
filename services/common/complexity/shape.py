"""What a text looks like, as numbers: lengths, options, digits, marks, telling words.

Nothing here names a subject or a data set; the same numbers are read of every prompt,
English or Chinese.
"""

from __future__ import annotations

import math
import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

_OPTION: Final = re.compile(r"\n(?=[A-J][.)] )")
_WORD: Final = re.compile(r"[A-Za-z']+")
_DIGIT: Final = re.compile(r"\d")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_SENTENCE: Final = re.compile(r"[.?!]\s|[。？！]")
_NAME: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
_LOUD: Final = re.compile(r"\b(?:NOT|EXCEPT)\b")
_MARKS: Final = '\n?$_,.(=^%"/'
# Groups of telling words; the last six are those of sums: shares, comparisons, rates,
# conditions, numbers written out, units.
_GROUPS: Final = (
    "not except never no",
    "statement",
    "all none both neither",
    "if then unless",
    "he she his her man woman",
    "each every per total many much",
    "half halves twice double triple thrice third thirds quarter quarters fourth fifth fraction"
    " ratio percent percentage average rate times",
    "more less fewer older younger longer shorter than taller faster slower greater difference"
    " combined together altogether total remaining left rest remainder extra another additional",
    "each every per apiece",
    "if then after before when until while instead but except only however unless",
    "one two three four five six seven eight nine ten eleven twelve dozen dozens hundred thousand"
    " million",
    "hour hours minute minutes day days week weeks month months year years second seconds feet inch"
    " inches mile miles pound pounds ounce ounces gallon gallons liter liters cm meter meters km"
    " dollar dollars cent cents",
)
_RATIOS, _COMPARISONS, _RATES, _CONDITIONS, _SPELLED, _UNITS = range(6, 12)
_CHINESE: Final = {
    _RATIOS: re.compile("一半|两倍|倍|分之|比例|平均|率"),
    _COMPARISONS: re.compile("比|多少|一共|总共|剩下|其余|相差|更"),
    _RATES: re.compile("每"),
    _CONDITIONS: re.compile("如果|假设|那么|然后|之前|之后|但是|除非|只有"),
    _SPELLED: re.compile("[一二三四五六七八九十百千万亿]"),
    _UNITS: re.compile("小时|分钟|天|周|月|年|秒|米|公里|公斤|升|元|块"),
}


def _group_index() -> dict[str, tuple[int, ...]]:
    index: dict[str, tuple[int, ...]] = {}
    for number, words in enumerate(_GROUPS):
        for word in words.split():
            index[word] = (*index.get(word, ()), number)
    return index


_GROUP_OF: Final = _group_index()
COUNT: Final = 57


def shape_of(text: str) -> NDArray[np.float32]:
    """`COUNT` numbers, always in the same order."""
    words = _WORD.findall(text)
    lower = [word.lower() for word in words]
    counts = _counts(lower, text)
    values = [*_layout(text), *_words(text, words, lower), *counts[:_RATIOS], *_sums(text, counts)]
    return np.array(values, np.float32)


def _counts(lower: list[str], text: str) -> list[int]:
    """How many words of each group there are."""
    counts = [0] * len(_GROUPS)
    for word in lower:
        for group in _GROUP_OF.get(word, ()):
            counts[group] += 1
    if not text.isascii():
        for group, pattern in _CHINESE.items():
            counts[group] += len(pattern.findall(text))
    return counts


def _layout(text: str) -> list[float]:
    """Lengths, the options of a choice, digits and marks."""
    question, *options = _OPTION.split(text)
    sizes = [len(option) for option in options] or [0]
    mean = sum(sizes) / len(sizes)
    return [
        len(text),
        math.log1p(len(text)),
        len(question),
        len(options),
        max(sizes),
        min(sizes),
        mean,
        math.sqrt(sum((size - mean) ** 2 for size in sizes) / len(sizes)),
        len(_DIGIT.findall(text)),
        len(_DIGIT.findall(question)),
        sum(1 for option in options if _DIGIT.search(option)),
        *(text.count(mark) for mark in _MARKS),
        0 if text.isascii() else sum(1 for char in text if char > "\x7f"),
    ]


def _words(text: str, words: list[str], lower: list[str]) -> list[float]:
    """Number, length and variety of words, and how many are shouted."""
    count = max(1, len(words))
    return [
        len(words),
        sum(map(len, words)) / count,
        len(set(lower)) / count,
        sum(1 for word in words if len(word) > 1 and word.isupper()),
        1.0 if _LOUD.search(text) else 0.0,
    ]


def _sums(text: str, counts: list[int]) -> list[float]:
    """How much there is to reckon with: sentences, numbers, relations."""
    numbers = _NUMBER.findall(text)
    sentences = [part for part in _SENTENCE.split(text) if part.strip()]
    last = sentences[-1] if sentences else ""
    last_counts = _counts([word.lower() for word in _WORD.findall(last)], last)
    whole = [float(number.replace(",", "").split(".")[0]) for number in numbers]
    sizes = [math.log1p(min(1e12, value)) for value in whole]
    related = counts[_RATIOS] + counts[_COMPARISONS] + counts[_CONDITIONS]
    return [
        len(sentences),
        len(text) / max(1, len(sentences)),
        len(last),
        *counts[_RATIOS:],
        len(numbers),
        len(set(numbers)),
        max(sizes, default=0.0),
        sum(sizes),
        sum(1 for number in numbers if "." in number),
        len(set(_NAME.findall(text))),
        len(numbers) / max(1, len(sentences)),
        related,
        last_counts[_RATIOS],
        last_counts[_COMPARISONS],
        len(_NUMBER.findall(last)),
        last_counts[_CONDITIONS],
        sum(1 for char in last if char in "?？"),
    ]
