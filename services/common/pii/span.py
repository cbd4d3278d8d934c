"""What a detector finds, and what a detector is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PiiSpan:
    """One find: `text[start:end]` is of kind `kind` (UPPER_SNAKE, a closed set)."""

    kind: str
    start: int
    end: int


class PiiDetector(Protocol):
    """Finds spans that do not overlap, in order. May raise: callers treat that as PII."""

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        """Finds personal data in `text`; offsets are in characters."""
