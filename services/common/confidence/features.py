"""What a learned scorer looks at: how the samples agree, and how question and answer fit.

Everything is cheap (counting and patterns) and independent of the model and the task, so the
same code scores a request while it runs and a data set afterwards.
"""

from __future__ import annotations

import math
import re
from typing import Final

from services.common.confidence.agreement import Agreement

_NUMBER = re.compile(r"\d[\d,.]*\d|\d")
_WORD = re.compile(r"\d+|[a-z]+|[\u4e00-\u9fff]")
_SENTENCE = re.compile(r"[.?!。？！]")

FEATURES: Final = (
    "votes_log_odds",
    "runner_up_log_odds",
    "margin",
    "entropy",
    "distinct_share",
    "unreadable_share",
    "weaker_half",
    "halves_apart",
    "question_words_log",
    "question_numbers_log",
    "question_sentences_log",
    "samples_log",
    "answer_in_question",
    "answer_words_in_question",
    "answer_is_whole_number",
    "answer_not_positive",
)
"""Names of `features`, in order."""


def features(question: str, found: Agreement) -> tuple[float, ...]:
    """One number for each of `FEATURES`."""
    return (*_of_samples(found), *_of_texts(question, found))


def _of_samples(found: Agreement) -> tuple[float, ...]:
    drawn = max(1, found.samples)
    first, second = found.halves
    return (
        _log_odds(found.votes, drawn),
        _log_odds(found.runner_up, drawn),
        found.margin,
        found.entropy,
        found.distinct / drawn,
        found.unreadable / drawn,
        min(first, second),
        abs(first - second),
    )


def _of_texts(question: str, found: Agreement) -> tuple[float, ...]:
    asked, answer = question.lower(), found.answer.lower()
    numbers = [_plain(number) for number in _NUMBER.findall(asked)]
    words, own = set(_WORD.findall(asked)), _WORD.findall(_plain(answer))
    value = _value(answer)
    return (
        math.log1p(len(_WORD.findall(asked))),
        math.log1p(len(numbers)),
        math.log1p(len(_SENTENCE.findall(asked))),
        math.log(max(1, found.samples)),
        # An answer that only repeats a figure of the question was often not worked out.
        float(bool(answer) and (_plain(answer) in numbers or answer in asked)),
        sum(word in words for word in own) / len(own) if own else 0.0,
        float(value is not None and value.is_integer()),
        float(value is not None and value <= 0),
    )


def _log_odds(count: int, total: int) -> float:
    # Half a count more on either side, so that none and all are finite (Haldane, Anscombe).
    return math.log((count + 0.5) / (total - count + 0.5))


def _plain(number: str) -> str:
    """`1,200.00` as `1200`."""
    bare = number.replace(",", "").replace("$", "")
    return bare.rstrip("0").rstrip(".") if "." in bare else bare


def _value(answer: str) -> float | None:
    try:
        value = float(answer.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
