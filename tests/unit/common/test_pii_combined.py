"""Detectors put together."""

from __future__ import annotations

import pytest

from services.common.pii.combined import CombinedDetector
from services.common.pii.detector import StructuredDetector
from services.common.pii.span import PiiSpan


class Names:
    """Finds `Li Na`."""

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        place = text.find("Li Na")
        return (PiiSpan("PERSON", place, place + 5),) if place >= 0 else ()


class Broken:
    def find(self, text: str) -> tuple[PiiSpan, ...]:
        raise RuntimeError


def test_finds_of_all_parts_in_order_and_without_overlap() -> None:
    detector = CombinedDetector(Names(), StructuredDetector(), StructuredDetector())
    text = "13812345678 is Li Na"
    assert detector.find(text) == (PiiSpan("PHONE", 0, 11), PiiSpan("PERSON", 15, 20))


def test_a_kind_of_ours_wins_over_another_of_equal_length() -> None:
    class Wrong:
        def find(self, text: str) -> tuple[PiiSpan, ...]:
            return (PiiSpan("ORGANIZATION", 0, 11),)

    assert CombinedDetector(Wrong(), StructuredDetector()).find("13812345678")[0].kind == "PHONE"


def test_a_part_that_fails_fails_the_whole() -> None:
    with pytest.raises(RuntimeError):
        CombinedDetector(StructuredDetector(), Broken()).find("x")
