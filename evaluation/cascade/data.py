"""Rows of a cascade: a question, the small model's samples, and both models' verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.rows import BadData, Row, read_rows
from services.common.confidence.agreement import Agreement, agreement


@dataclass(frozen=True, slots=True)
class CascadeRow:
    """One question.

    Attributes:
        found: What the small model's samples say together.
        weak_right: The most frequent of them is the gold answer.
        strong_right: The large model's answer is.
    """

    question: str
    found: Agreement
    weak_right: bool
    strong_right: bool


def read_cascade(path: Path) -> list[CascadeRow]:
    """All rows with `question`, `gold`, `weak_samples` and `strong_answer`.

    Raises:
        BadData: Not readable or a column is missing or of the wrong type.
    """
    return [_row(row) for row in read_rows(path)]


def _row(row: Row) -> CascadeRow:
    samples = row.get("weak_samples", list)
    if not samples:
        raise BadData(f"{row.where}: `weak_samples` is empty")
    read = [_text(sample, f"{row.where}: weak_samples[{i}]") for i, sample in enumerate(samples)]
    gold = _text(row.values.get("gold"), f"{row.where}: `gold`")
    if gold is None:
        raise BadData(f"{row.where}: the column `gold` is missing or null")
    if "strong_answer" not in row.values:
        raise BadData(f"{row.where}: the column `strong_answer` is missing")
    strong = _text(row.values["strong_answer"], f"{row.where}: `strong_answer`")
    found = agreement(read)
    return CascadeRow(
        question=row.get("question", str),
        found=found,
        weak_right=_same(found.answer, gold),
        strong_right=strong is not None and _same(strong, gold),
    )


def _text(value: Any, where: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise BadData(f"{where} must be a text, a number or null")


def _same(answer: str, gold: str) -> bool:
    """Equal as text without case and space, or as numbers."""
    if answer.strip().casefold() == gold.strip().casefold():
        return True
    try:
        return abs(float(answer) - float(gold)) < 1e-6
    except ValueError:
        return False
