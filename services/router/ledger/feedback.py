"""Verdicts of callers: checked, matched with the tenant's own request, kept."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import structlog
from opentelemetry import metrics

from services.common.errors import InvalidField, NotFound
from services.common.pii.span import PiiDetector
from services.common.telemetry import names
from services.router.ledger.entry import Verdict
from services.router.tenants import Tenant
from tandem.router.v1 import router_pb2

_log = structlog.get_logger()
_verdicts = metrics.get_meter("tandem.router").create_counter(
    names.VERDICTS, description="Verdicts of callers that were kept"
)
_MAX_ID_CHARS = 128
_VERDICTS = {
    router_pb2.VERDICT_GOOD: "GOOD",
    router_pb2.VERDICT_BAD: "BAD",
    router_pb2.VERDICT_CORRECTED: "CORRECTED",
}


class VerdictKeeper(Protocol):
    """The ledger, as far as feedback needs it. Both raise StoreDown."""

    async def has(self, tenant: str, request_id: str) -> bool:
        """Whether the tenant has such a request, stored or not yet."""

    async def save(self, verdict: Verdict) -> None:
        """Returns when the verdict is safe."""


class AnswerKeeper(Protocol):
    """The cache, as far as feedback needs it."""

    async def forget(self, tenant: str, request_id: str) -> None:
        """Drops the stored answer that the request was served, or gave."""


@dataclass(frozen=True, slots=True)
class FeedbackDesk:
    """Takes verdicts.

    Attributes:
        max_text_chars: Bound of a corrected text.
    """

    keeper: VerdictKeeper
    detector: PiiDetector
    max_text_chars: int
    cache: AnswerKeeper | None = None

    async def take(self, request: router_pb2.FeedbackRequest, tenant: Tenant) -> None:
        """Keeps one verdict.

        Raises:
            InvalidField: A field breaks its rule.
            NotFound: The tenant has no such request; another's reads the same.
            StoreDown: The ledger can neither tell nor keep it now.
        """
        verdict = check_feedback(request, self.max_text_chars)
        if not await self.keeper.has(tenant.name, request.request_id):
            raise NotFound("request_id: no such request of this tenant")
        if verdict != "GOOD" and self.cache is not None:
            # First, so that a wrong answer is gone even where the verdict cannot be kept.
            await self.cache.forget(tenant.name, request.request_id)
        text = self._sample(request.corrected_text) if tenant.samples else ""
        await self.keeper.save(Verdict(tenant.name, request.request_id, time.time(), verdict, text))
        _verdicts.add(1, {names.VERDICT: verdict})

    def _sample(self, text: str) -> str:
        """The text with each find replaced by its kind; nothing where the detector fails."""
        try:
            spans = self.detector.find(text)
        except Exception as exc:  # whatever breaks in there must not let text out
            _log.error("pii_detector_failed", error=type(exc).__name__)
            return ""
        for span in reversed(spans):
            text = f"{text[: span.start]}[{span.kind}]{text[span.end :]}"
        return text


def check_feedback(request: router_pb2.FeedbackRequest, max_text_chars: int) -> str:
    """Checks every field; returns the verdict's name.

    Raises:
        InvalidField: The first field that breaks its rule.
    """
    if not 1 <= len(request.request_id) <= _MAX_ID_CHARS:
        raise InvalidField("request_id", f"must have from 1 to {_MAX_ID_CHARS} characters")
    verdict = _VERDICTS.get(request.verdict)
    if verdict is None:
        raise InvalidField("verdict", "must be VERDICT_GOOD, VERDICT_BAD or VERDICT_CORRECTED")
    if verdict != "CORRECTED" and request.corrected_text:
        raise InvalidField("corrected_text", "must be empty unless verdict is VERDICT_CORRECTED")
    if verdict == "CORRECTED" and not request.corrected_text.strip():
        raise InvalidField("corrected_text", "must hold the right answer for VERDICT_CORRECTED")
    if len(request.corrected_text) > max_text_chars:
        raise InvalidField("corrected_text", f"must have at most {max_text_chars} characters")
    return verdict
