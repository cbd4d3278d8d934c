"""Feedback: what is checked, who may judge what, which text is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from services.common.errors import InvalidField, NotFound
from services.common.pii.span import PiiSpan
from services.router.ledger.entry import Verdict
from services.router.ledger.feedback import FeedbackDesk
from services.router.tenants import Tenant
from tandem.router.v1 import router_pb2

GOOD, BAD = router_pb2.VERDICT_GOOD, router_pb2.VERDICT_BAD
CORRECTED = router_pb2.VERDICT_CORRECTED
ACME = Tenant(name="acme")
OPTED_IN = Tenant(name="acme", samples=True)


@dataclass(slots=True)
class Keeper:
    """Knows one request of acme."""

    kept: list[Verdict] = field(default_factory=list)

    async def has(self, tenant: str, request_id: str) -> bool:
        return (tenant, request_id) == ("acme", "r1")

    async def save(self, verdict: Verdict) -> None:
        self.kept.append(verdict)


class Detector:
    """Finds every SECRET."""

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        parts, at, found = text.split("SECRET"), 0, []
        for part in parts[:-1]:
            at += len(part)
            found.append(PiiSpan("EMAIL", at, at + 6))
            at += 6
        return tuple(found)


class Broken:
    def find(self, text: str) -> tuple[PiiSpan, ...]:
        raise RuntimeError(text)


def request(**fields: object) -> router_pb2.FeedbackRequest:
    return router_pb2.FeedbackRequest(**{"request_id": "r1", "verdict": GOOD, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "field_name"),
    [
        ({"request_id": ""}, "request_id"),
        ({"request_id": "x" * 129}, "request_id"),
        ({"verdict": 0}, "verdict"),
        ({"verdict": 9}, "verdict"),
        ({"verdict": GOOD, "corrected_text": "x"}, "corrected_text"),
        ({"verdict": BAD, "corrected_text": "x"}, "corrected_text"),
        ({"verdict": CORRECTED}, "corrected_text"),
        ({"verdict": CORRECTED, "corrected_text": " \n"}, "corrected_text"),
        ({"verdict": CORRECTED, "corrected_text": "x" * 101}, "corrected_text"),
    ],
)
async def test_bad_feedback_names_the_field(fields: dict[str, object], field_name: str) -> None:
    keeper = Keeper()
    with pytest.raises(InvalidField) as caught:
        await FeedbackDesk(keeper, Detector(), 100).take(request(**fields), ACME)
    assert caught.value.field == field_name
    assert keeper.kept == []


async def test_unknown_and_foreign_requests_read_the_same() -> None:
    keeper, seen = Keeper(), set()
    for tenant, request_id in ((ACME, "r2"), (Tenant(name="other"), "r1")):
        with pytest.raises(NotFound) as caught:
            await FeedbackDesk(keeper, Detector(), 100).take(request(request_id=request_id), tenant)
        seen.add((caught.value.message, caught.value.reason))
    assert len(seen) == 1
    assert keeper.kept == []


@pytest.mark.parametrize(
    ("tenant", "detector", "text"),
    [
        (ACME, Detector(), ""),
        (OPTED_IN, Detector(), "write to [EMAIL] or [EMAIL]."),
        (OPTED_IN, Broken(), ""),
    ],
)
async def test_text_is_kept_by_opt_in_and_redacted(
    tenant: Tenant, detector: Detector, text: str
) -> None:
    keeper = Keeper()
    given = request(verdict=CORRECTED, corrected_text="write to SECRET or SECRET.")
    await FeedbackDesk(keeper, detector, 100).take(given, tenant)
    (kept,) = keeper.kept
    assert (kept.tenant, kept.request_id, kept.verdict) == ("acme", "r1", "CORRECTED")
    assert kept.corrected_text == text
