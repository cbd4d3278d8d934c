"""Replaces personal data in a request by placeholders, or refuses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from services.cloud_proxy.redaction.jsontext import map_text
from services.cloud_proxy.redaction.vault import Vault
from services.cloud_proxy.request import ChatRequest
from services.cloud_proxy.request import map_text as map_request
from services.common.errors import PermissionDenied
from services.common.pii.detector import resolve
from services.common.pii.span import PiiDetector, PiiSpan

# One replacement may bare what a longer find had covered; a text that is not clean then is refused.
_PASSES = 4
_NAMED_FIELDS = 8
# Names have a fixed alphabet and patterns a meaning of their own: no placeholder fits there.
_FIXED_ENDINGS = (".name", ".id", ".tool_call_id", "output.regex")
_FIXED_KEYS = frozenset({"pattern", "patternProperties"})
_SCHEMAS = (".parameters_json_schema", "output.json_schema")


class PiiBlocked(PermissionDenied):
    """The request holds personal data that may not leave."""

    reason = "PII_BLOCKED"


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


@dataclass(frozen=True, slots=True)
class Redacted:
    """A request without personal data, and how to undo it."""

    request: ChatRequest[str]
    finds: Finds
    values: Mapping[str, str]


class Screen:
    """Looks through every text of a request, inside JSON too.

    Raises:
        DetectorFailed: From each method, where the detector raised.
    """

    def __init__(self, detector: PiiDetector) -> None:
        self._detector = detector

    def finds(
        self, request: ChatRequest[str], note: Callable[[str, str], None] | None = None
    ) -> Finds:
        """What is in `request`; `note(kind, value)` is called for each find, in order."""
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
        """Finds in one text; the key before it is read as its label."""
        if not text:
            return ()
        head = f"{label}: " if label else ""
        try:
            found = self._detector.find(head + text)
        except Exception as exc:
            # Its message may hold the text: the type alone is told.
            raise DetectorFailed(path, type(exc).__name__) from None
        skip = len(head)
        return tuple(
            PiiSpan(s.kind, max(s.start - skip, 0), s.end - skip) for s in found if s.end > skip
        )


class DetectorFailed(Exception):
    """The detector raised; tells where and the type, never the text."""

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(f"{kind} at {path}")
        self.path = path
        self.kind = kind


def redact(request: ChatRequest[str], screen: Screen) -> Redacted:
    """The request with each value replaced by its placeholder.

    Raises:
        PiiBlocked: Something stands where no placeholder fits, or is still found afterwards.
        DetectorFailed: Personal data cannot be ruled out.
    """
    found: list[tuple[str, str]] = []
    finds = screen.finds(request, lambda kind, value: found.append((kind, value)))
    if not found:
        return Redacted(request, finds, {})
    vault = Vault()
    map_request(request, lambda _, text: _reserve(vault, text))
    for kind, value in found:
        vault.placeholder(kind, value)
    return Redacted(_hide(request, screen, vault), finds, dict(vault.values))


def _hide(request: ChatRequest[str], screen: Screen, vault: Vault) -> ChatRequest[str]:
    """Replaces until no new value turns up that could stand in an earlier field too."""
    fields = _Fields(screen, vault)
    for _ in range(_PASSES):
        known = len(vault.values)
        request = map_request(request, fields.hide)
        if len(vault.values) == known:
            return request
    raise PiiBlocked("personal data is still found after replacing it")


def _reserve(vault: Vault, text: str) -> None:
    def part(_: str, plain: str) -> str:
        vault.reserve(plain)
        return plain

    vault.reserve(text)
    map_text(text, part)


class _Fields:
    """Replaces values in one field after the other."""

    def __init__(self, screen: Screen, vault: Vault) -> None:
        self._screen = screen
        self._vault = vault

    def hide(self, path: str, text: str) -> str:
        fixed = path.endswith(_FIXED_ENDINGS)
        schema = path.endswith(_SCHEMAS)

        def part(label: str, plain: str) -> str:
            clean = self._clean(path, label, plain)
            if clean != plain and (fixed or (schema and label in _FIXED_KEYS)):
                raise PiiBlocked(f"personal data cannot be replaced in {path}")
            return clean

        return map_text(text, part)

    def _clean(self, path: str, label: str, text: str) -> str:
        for _ in range(_PASSES):
            spans = self._spans(path, label, text)
            if not spans:
                return text
            text = self._cut(text, spans)
        raise PiiBlocked(f"personal data is still found after replacing it: {path}")

    def _spans(self, path: str, label: str, text: str) -> tuple[PiiSpan, ...]:
        """What is still to be replaced: new finds, and values known from elsewhere."""
        left: list[PiiSpan] = []
        for span in (*self._screen.spans(path, label, text), *self._vault.repeats(text)):
            covered = self._vault.covers(text, span)
            if covered is None:
                raise PiiBlocked(f"personal data is mixed with placeholders: {path}")
            if not covered:
                left.append(span)
        return resolve(left)

    def _cut(self, text: str, spans: tuple[PiiSpan, ...]) -> str:
        out: list[str] = []
        place = 0
        for span in spans:
            value = text[span.start : span.end]
            known = self._vault.same_as(value)
            new = known if known is not None else self._vault.placeholder(span.kind, value)
            out += text[place : span.start], new
            place = span.end
        return "".join((*out, text[place:]))
