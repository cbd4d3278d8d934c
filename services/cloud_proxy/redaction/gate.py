"""The gate: nothing leaves but through here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

import structlog
from opentelemetry import trace

from services.cloud_proxy.redaction.cleared import SEAL, ClearedRequest, ClearedText
from services.cloud_proxy.redaction.redactor import PiiBlocked, redact
from services.cloud_proxy.redaction.screen import DetectorFailed, Finds, Screen
from services.cloud_proxy.request import ChatRequest, map_text, texts
from services.common.pii.span import PiiDetector
from services.common.telemetry import names

_log = structlog.get_logger()
_tracer = trace.get_tracer("tandem.cloud")
# Searching this much, before and after, takes about as long as one lap of the loop should.
_INLINE_CHARS = 1_500
_Clear = Callable[[ChatRequest[str]], "Clearance"]


class Rule(StrEnum):
    """What happens to personal data that would leave."""

    REFUSE = "refuse"
    REDACT = "redact"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class Clearance:
    """A request that may leave.

    Attributes:
        request: To be sent.
        rule: By which it was cleared.
        finds: What the caller's text held; None where the detector failed under `ALLOW`.
        values: What the placeholders in it stand for, for `Restorer`.
    """

    request: ClearedRequest
    rule: Rule
    finds: Finds | None
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


class Gate:
    """Screens every text of a request.

    Args:
        detector: Finds personal data; where it fails, the request is refused.
        rule: What to do with finds.
        tenants: Rules of single tenants, before `rule`.
    """

    def __init__(
        self,
        detector: PiiDetector,
        rule: Rule,
        tenants: Mapping[str, Rule] = MappingProxyType({}),
    ) -> None:
        self._screen = Screen(detector)
        self._rule = rule
        self._tenants = tenants

    async def clear(self, request: ChatRequest[str], tenant: str = "") -> Clearance:
        """The request, fit to leave.

        Raises:
            PiiBlocked: Names the kinds and the fields, never a value.
        """
        clear = self._by_rule(self._tenants.get(tenant, self._rule))
        with _tracer.start_as_current_span(names.SPAN_REDACT) as span:
            if sum(map(len, texts(request))) <= _INLINE_CHARS:
                cleared = clear(request)
            else:
                cleared = await asyncio.to_thread(clear, request)
            kinds = sorted(cleared.finds.kinds) if cleared.finds else []
            span.set_attribute(names.PII_TYPES, kinds)
            return cleared

    def _by_rule(self, rule: Rule) -> _Clear:
        if rule is Rule.ALLOW:
            return self._allow
        return _closed(self._redact if rule is Rule.REDACT else self._refuse)

    def _refuse(self, request: ChatRequest[str]) -> Clearance:
        finds = self._screen.finds(request)
        if finds.kinds:
            raise PiiBlocked(f"personal data {finds.message()}")
        return Clearance(_seal(request), Rule.REFUSE, finds)

    def _redact(self, request: ChatRequest[str]) -> Clearance:
        done = redact(request, self._screen)
        return Clearance(_seal(done.request), Rule.REDACT, done.finds, done.values)

    def _allow(self, request: ChatRequest[str]) -> Clearance:
        """Screens for the audit alone."""
        try:
            finds = self._screen.finds(request)
        except DetectorFailed as failed:
            _log.error("pii_detector_failed", error=failed.kind, field=failed.path)
            return Clearance(_seal(request), Rule.ALLOW, None)
        return Clearance(_seal(request), Rule.ALLOW, finds)


def _closed(clear: _Clear) -> _Clear:
    """`clear`, refusing where it breaks, whatever breaks in it."""

    def guarded(request: ChatRequest[str]) -> Clearance:
        try:
            return clear(request)
        except PiiBlocked:
            raise
        except DetectorFailed as failed:
            _log.error("pii_detector_failed", error=failed.kind, field=failed.path)
        except Exception as exc:
            # Its message may hold the text: the type alone is told.
            _log.error("redaction_failed", error=type(exc).__name__)
        raise PiiBlocked("personal data cannot be ruled out: the detector failed")

    return guarded


def _seal(request: ChatRequest[str]) -> ClearedRequest:
    return map_text(request, lambda _, text: ClearedText(text, SEAL))
