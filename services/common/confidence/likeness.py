"""How far two answers say the same, cheaply: equal in form, or by the words they share."""

from __future__ import annotations

import json
import re
from collections import Counter

# A number keeps its sign and its separators: -5 is not 5.
_WORD = re.compile(r"[\u4e00-\u9fff]|(?<!\w)-?\d+(?:[.,]\d+)*|[^\W_]+")


def likeness(one: str, other: str) -> float:
    """1 for answers that are equal as JSON or without case and punctuation, else word F1.

    F1 over the bag of words, Chinese by character, as in SQuAD's evaluation (Rajpurkar et
    al. 2016, arXiv 1606.05250).
    """
    if _as_json(one) is not None and _as_json(one) == _as_json(other):
        return 1.0
    left, right = Counter(_words(one)), Counter(_words(other))
    if left == right:
        return 1.0 if left or one.strip() == other.strip() else 0.0
    common = (left & right).total()
    return 2.0 * common / (left.total() + right.total())


def normal_form(text: str) -> str:
    """Equal for answers that are equal as JSON or without case and punctuation."""
    read = _as_json(text)
    if read is not None:
        return json.dumps(read, sort_keys=True, ensure_ascii=False)
    return " ".join(_words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _as_json(text: str) -> object:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        read: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return read
