"""Counting, intervals, and the generated texts."""

from __future__ import annotations

import pytest

from evaluation.intervals import wilson
from evaluation.pii_cases import NEAR_MISSES, TRUE, generate
from evaluation.pii_data import Case, Label
from evaluation.pii_score import Tally, evaluate, iou, score
from services.common.pii.detector import StructuredDetector
from services.common.pii.kinds import PiiKind
from services.common.pii.span import PiiSpan


class Scripted:
    """Finds what it is told, by text."""

    def __init__(self, finds: dict[str, tuple[PiiSpan, ...]]) -> None:
        self._finds = finds

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        return self._finds.get(text, ())


def test_counts_by_kind_and_overlap() -> None:
    cases = [
        Case("0123456789", (Label("PHONE_NUMBER", 0, 8), Label("PERSON", 8, 10))),
        Case("another text", (Label("EMAIL", 0, 4),)),
        Case("clean", ()),
        Case("alarm", ()),
    ]
    finds = {
        "0123456789": (PiiSpan("PHONE", 4, 8), PiiSpan("PHONE", 8, 10)),
        "another text": (PiiSpan("IBAN", 0, 4),),
        "alarm": (PiiSpan("IBAN", 0, 4),),
    }
    report = evaluate(cases, Scripted(finds))
    assert (report.by_type["PHONE"].hits, report.by_type["PHONE"].false) == (1, 1)
    assert report.by_type["EMAIL"].missed == 1
    assert report.by_type["IBAN"].false == 2
    whole = report.structured
    assert (whole.hits, whole.false, whole.missed) == (1, 3, 1)
    assert (whole.recall, whole.precision) == (0.5, 0.25)
    assert report.not_detected == {"PERSON": 1}
    assert (report.texts, report.clean_texts, report.clean_texts_with_finds) == (4, 2, 1)
    assert 0 <= report.timing.p50 <= report.timing.p95


def test_one_find_serves_one_label() -> None:
    labels = (Label("PHONE", 0, 6), Label("PHONE", 0, 8))
    report = evaluate([Case("12345678", labels)], Scripted({"12345678": (PiiSpan("PHONE", 0, 8),)}))
    assert (report.structured.hits, report.structured.missed) == (1, 1)


def test_f2_weighs_recall_twice() -> None:
    figures = score(Tally(hits=8, false=2, missed=4))
    precision, recall = 8 / 10, 8 / 12
    assert figures.f2 == pytest.approx(5 * precision * recall / (4 * precision + recall))
    nothing = score(Tally())
    assert (nothing.recall, nothing.precision, nothing.f2) == (None, None, None)


def test_wilson() -> None:
    assert wilson(0, 0) is None
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)


def test_iou() -> None:
    assert iou(0, 10, 5, 15) == pytest.approx(1 / 3)
    assert iou(0, 4, 4, 8) == 0


def test_generated_texts_are_the_same_for_a_seed_and_hold_every_kind() -> None:
    cases = generate(1_000, 5)
    assert cases == generate(1_000, 5)
    assert cases != generate(1_000, 6)
    assert {label.type for case in cases for label in case.labels} == {k.value for k in PiiKind}
    clean = [case for case in cases if not case.labels]
    assert 300 < len(clean) < 500
    assert all(case.text[label.start : label.end] for case in cases for label in case.labels)
    shapes = [shape for _, _, shape in TRUE] + [shape for _, shape in NEAR_MISSES]
    assert all(template.count("{}") == 1 for templates in shapes for template in templates)


def test_the_detector_meets_its_target_on_generated_texts() -> None:
    report = evaluate(generate(2_000, 20_261), StructuredDetector())
    assert report.structured.recall is not None
    assert report.structured.precision is not None
    assert report.structured.recall >= 0.99
    assert report.structured.precision >= 0.95
