"""Several detectors as one: structured kinds by rule, others by a model where one is at hand."""

from __future__ import annotations

from services.common.pii.detector import StructuredDetector, resolve
from services.common.pii.entities import EntityDetector
from services.common.pii.span import PiiDetector, PiiSpan


def open_detector(*, entities: bool) -> PiiDetector:
    """The detector of a process: structured kinds, and names and addresses where asked for."""
    structured = StructuredDetector()
    return CombinedDetector(structured, EntityDetector()) if entities else structured


class CombinedDetector:
    """Finds what any of its parts finds; of overlapping finds the longest stays.

    A part that raises fails the whole: callers treat that as a find.
    """

    def __init__(self, *parts: PiiDetector) -> None:
        self._parts = parts

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        """See `PiiDetector.find`."""
        return resolve(span for part in self._parts for span in part.find(text))
