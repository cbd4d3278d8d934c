"""Several detectors as one: structured kinds by rule, others by a model where one is at hand."""

from __future__ import annotations

from services.common.pii.detector import resolve
from services.common.pii.span import PiiDetector, PiiSpan


class CombinedDetector:
    """Finds what any of its parts finds; of overlapping finds the longest stays.

    A part that raises fails the whole: callers treat that as a find.
    """

    def __init__(self, *parts: PiiDetector) -> None:
        self._parts = parts

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        """See `PiiDetector.find`."""
        return resolve(span for part in self._parts for span in part.find(text))
