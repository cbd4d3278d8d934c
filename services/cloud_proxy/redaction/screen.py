"""Looks through every text of a request for personal data."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from services.cloud_proxy.redaction.jsontext import map_text
from services.cloud_proxy.request import ChatRequest
from services.cloud_proxy.request import map_text as map_request
from services.common.pii.detector import resolve
from services.common.pii.span import PiiDetector, PiiSpan

_NAMED_FIELDS = 8
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([nrtbf\"/]))")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Finds:
    """What was found: kinds and places, never values.

    Attributes:
        kinds: How many of each kind.
        fields: Kinds by field path.
    """

    kinds: Mapping[str, int]
    fields: Mapping[str, frozenset[str]]

    def message(self) -> str:
        """Kinds and fields for people."""
        paths = sorted(self.fields)
        more = "" if len(paths) <= _NAMED_FIELDS else f" and {len(paths) - _NAMED_FIELDS} more"
        where = ", ".join(paths[:_NAMED_FIELDS])
        return f"({', '.join(sorted(self.kinds))}) may not leave: {where}{more}"


class DetectorFailed(Exception):
    """The detector raised; tells where and the type, never the text."""

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(f"{kind} at {path}")
        self.path = path
        self.kind = kind


class Screen:
    """Finds spans field by field, inside JSON too."""

    def __init__(self, detector: PiiDetector) -> None:
        self._detector = detector

    def finds(
        self, request: ChatRequest[str], note: Callable[[str, str], None] | None = None
    ) -> Finds:
        """What is in `request`; `note(kind, value)` is called for each find, in order.

        Raises:
            DetectorFailed: The detector raised.
        """
        kinds: Counter[str] = Counter()
        fields: dict[str, set[str]] = defaultdict(set)

        def look(path: str, text: str) -> None:
            def part(label: str, plain: str) -> str:
                for span in self.spans(path, label, plain):
                    kinds[str(span.kind)] += 1
                    fields[path].add(str(span.kind))
                    if note is not None:
                        note(span.kind, plain[span.start : span.end])
                return plain

            map_text(text, part)

        map_request(request, look)
        return Finds(dict(kinds), {path: frozenset(found) for path, found in fields.items()})

    def spans(self, path: str, label: str, text: str) -> tuple[PiiSpan, ...]:
        """Finds in one text; the key before it is read as its label.

        Raises:
            DetectorFailed: The detector raised.
        """
        if not text:
            return ()
        head = f"{label}: " if label else ""
        try:
            found = self._find(head + text)
        except Exception as exc:
            # Its message may hold the text: the type alone is told.
            raise DetectorFailed(path, type(exc).__name__) from None
        skip = len(head)
        return tuple(
            PiiSpan(s.kind, max(s.start - skip, 0), s.end - skip) for s in found if s.end > skip
        )

    def _find(self, text: str) -> tuple[PiiSpan, ...]:
        """Finds in `text` as it is, and as it reads without JSON's escapes.

        JSON within prose hides full-width digits and Chinese labels behind `\\u`, and the
        beginning of a number behind the letter of `\\n`.
        """
        found = self._detector.find(text)
        if not _ESCAPE.search(text):
            return found
        plain, starts = _unescape(text)
        more = (PiiSpan(s.kind, starts[s.start], starts[s.end]) for s in self._detector.find(plain))
        return resolve((*found, *more))


def _unescape(text: str) -> tuple[str, list[int]]:
    """The text without escapes, and where each of its characters and its end were."""
    chars: list[str] = []
    starts: list[int] = []
    place = 0
    for escape in _ESCAPE.finditer(text):
        chars += text[place : escape.start()]
        starts += range(place, escape.start() + 1)
        code, letter = escape.groups()
        chars.append(chr(int(code, 16)) if code else _PLAIN.get(letter, letter))
        place = escape.end()
    chars += text[place:]
    starts += range(place, len(text) + 1)
    return "".join(chars), starts
