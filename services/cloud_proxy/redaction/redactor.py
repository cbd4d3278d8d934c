"""Replaces personal data in a request by placeholders, or refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.cloud_proxy.redaction.jsontext import map_text
from services.cloud_proxy.redaction.screen import Finds, Screen
from services.cloud_proxy.redaction.vault import Vault
from services.cloud_proxy.request import ChatRequest
from services.cloud_proxy.request import map_text as map_request
from services.common.errors import PermissionDenied
from services.common.pii.detector import resolve
from services.common.pii.span import PiiSpan

# One replacement may bare what a longer find had covered; a text that is not clean then is refused.
_PASSES = 4
# Names have a fixed alphabet and patterns a meaning of their own: no placeholder fits there.
_FIXED_ENDINGS = (".name", ".id", ".tool_call_id", "output.regex")
_FIXED_KEY = "pattern"
_SCHEMAS = (".parameters_json_schema", "output.json_schema")


class PiiBlocked(PermissionDenied):
    """The request holds personal data that may not leave."""

    reason = "PII_BLOCKED"


@dataclass(frozen=True, slots=True)
class Redacted:
    """A request without personal data, and how to undo it."""

    request: ChatRequest[str]
    finds: Finds
    values: Mapping[str, str] = field(repr=False)


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
            if clean != plain and (fixed or (schema and label == _FIXED_KEY)):
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
        written = self._vault.written(text)
        left: list[PiiSpan] = []
        for span in (*self._screen.spans(path, label, text), *self._vault.repeats(text)):
            overlapping = [place for place in written if _overlap(place, span)] if written else []
            if not overlapping:
                left.append(span)
            elif _goes_beyond(text, span, overlapping):
                raise PiiBlocked(f"personal data is mixed with placeholders: {path}")
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


def _overlap(place: tuple[int, int], span: PiiSpan) -> bool:
    return place[0] < span.end and span.start < place[1]


def _goes_beyond(text: str, span: PiiSpan, written: list[tuple[int, int]]) -> bool:
    """Whether a find holds more than placeholders and signs: `password: [SECRET_1]` does not."""
    rest = set(range(span.start, span.end)).difference(*(range(*place) for place in written))
    return any(text[place].isalnum() for place in rest)
