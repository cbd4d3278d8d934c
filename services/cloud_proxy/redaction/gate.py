"""The gate: nothing leaves but through here.

Now it refuses what holds personal data, or lets all through where the operator
said so. A redactor that replaces finds by placeholders is one more `Rule` and
another change for `map_text`; callers keep the same call.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from enum import StrEnum
from typing import TypeVar

import structlog
from opentelemetry import trace

from services.cloud_proxy.redaction.cleared import SEAL, ClearedRequest, ClearedText
from services.cloud_proxy.request import ChatRequest, map_text, texts
from services.common.errors import PermissionDenied
from services.common.pii.span import PiiDetector
from services.common.telemetry import names

_log = structlog.get_logger()
_tracer = trace.get_tracer("tandem.cloud")
T = TypeVar("T")
# Screening this much takes about as long as one lap of the loop should.
_INLINE_CHARS = 4_000
_NAMED_FIELDS = 8


class Rule(StrEnum):
    """What happens to personal data that would leave."""

    REFUSE = "refuse"
    ALLOW = "allow"


class PiiBlocked(PermissionDenied):
    """The request holds personal data, and the rule is to refuse it."""

    reason = "PII_BLOCKED"


class Gate:
    """Screens every text of a request.

    Args:
        detector: Finds personal data; where it fails, the request is refused.
        rule: What to do with finds.
    """

    def __init__(self, detector: PiiDetector, rule: Rule) -> None:
        self._detector = detector
        self._rule = rule

    async def clear(self, request: ChatRequest[str]) -> ClearedRequest:
        """The request, fit to leave.

        Raises:
            PiiBlocked: Names the kinds and the fields, never a value.
        """
        with _tracer.start_as_current_span(names.SPAN_REDACT) as span:
            if self._rule is Rule.ALLOW:
                return _seal(request)
            found = await self._screen(request)
            if not found:
                return _seal(request)
            kinds = sorted(set().union(*found.values()))
            span.set_attribute(names.PII_TYPES, kinds)
            raise PiiBlocked(_message(kinds, sorted(found)))

    async def _screen(self, request: ChatRequest[str]) -> dict[str, set[str]]:
        """Kinds found by field path."""
        if sum(map(len, texts(request))) <= _INLINE_CHARS:
            return self._find(request)
        return await asyncio.to_thread(self._find, request)

    def _find(self, request: ChatRequest[str]) -> dict[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)

        def look(path: str, text: str) -> None:
            try:
                found_here = {str(span.kind) for span in self._detector.find(text)} if text else ()
            except Exception as exc:
                # Its message may hold the text: the type alone is told.
                _log.error("pii_detector_failed", error=type(exc).__name__, field=path)
                raise PiiBlocked("personal data cannot be ruled out: the detector failed") from None
            if found_here:
                found[path].update(found_here)

        map_text(request, look)
        return found


def _seal(request: ChatRequest[str]) -> ClearedRequest:
    return map_text(request, lambda _, text: ClearedText(text, SEAL))


def _message(kinds: list[str], paths: list[str]) -> str:
    more = "" if len(paths) <= _NAMED_FIELDS else f" and {len(paths) - _NAMED_FIELDS} more"
    where = ", ".join(paths[:_NAMED_FIELDS])
    return f"personal data ({', '.join(kinds)}) may not leave: {where}{more}"
