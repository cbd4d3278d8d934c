"""Reads rows of predictive routing: JSON lines with `prompt`, `weak_correct`, `strong_correct`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation import rows


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt and whether each model answered it rightly.

    Attributes:
        subject: For a baseline only, empty where the file has none; no model sees it.
    """

    prompt: str
    weak_correct: bool
    strong_correct: bool
    subject: str = ""

    @property
    def gain(self) -> int:
        """1: only the strong model is right; −1: only the weak one."""
        return int(self.strong_correct) - int(self.weak_correct)


def read_rows(path: Path) -> list[Row]:
    """Rows of a file, gzipped or not.

    Raises:
        BadData: It cannot be read, or a line breaks the format.
    """
    return [_row(row) for row in rows.read_rows(path)]


def rows_hash(trained_on: Sequence[Row]) -> str:
    """Names what a model was trained on, whatever the order of rows."""
    lines = sorted(f"{r.prompt}\0{r.weak_correct:d}{r.strong_correct:d}" for r in trained_on)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _row(row: rows.Row) -> Row:
    prompt = row.get("prompt", str)
    if not prompt.strip():
        raise rows.BadData(f"{row.where}: `prompt` must not be empty")
    subject = row.get("subject", str) if "subject" in row.values else ""
    return Row(prompt, row.truth("weak_correct"), row.truth("strong_correct"), subject)
