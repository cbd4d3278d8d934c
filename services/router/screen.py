"""Looks for personal data in every text field of a request."""

from __future__ import annotations

import structlog

from services.common.pii.span import PiiDetector
from services.router.policy.facts import Screening
from services.router.validate import text_fields
from tandem.router.v1 import router_pb2

_log = structlog.get_logger()


def screen(request: router_pb2.RouteRequest, detector: PiiDetector) -> Screening:
    """Kinds of what was found; a detector that fails counts as a find."""
    kinds: set[str] = set()
    try:
        for _, text in text_fields(request):
            if text:
                kinds.update(span.kind for span in detector.find(text))
    except Exception as exc:  # whatever breaks in there must not let text out
        _log.error("pii_detector_failed", error=type(exc).__name__)
        return Screening(kinds=tuple(sorted(kinds)), failed=True)
    return Screening(kinds=tuple(sorted(kinds)))
