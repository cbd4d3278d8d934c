"""Names, organizations and addresses by rule: found where a cue stands, quiet elsewhere."""

from __future__ import annotations

import time

import pytest

from evaluation.pii_data import Case, Label
from evaluation.pii_score import evaluate_entities
from services.common.pii.combined import open_detector
from services.common.pii.entities import EntityDetector, EntityKind

PERSON, FIRM, ADDRESS = EntityKind.PERSON, EntityKind.ORGANIZATION, EntityKind.ADDRESS


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Please ask Dr. Jane van Dyke about it", PERSON, "Jane van Dyke"),
        ("Hi, my name is Anna-Maria O'Neil.", PERSON, "Anna-Maria O'Neil"),
        ("我叫王小明，想退货", PERSON, "王小明"),
        ("请联系欧阳先生", PERSON, "欧阳"),
        ("收件人：李雷", PERSON, "李雷"),
        ("an invoice of Acme Widgets, Inc. came", FIRM, "Acme Widgets, Inc."),
        ("我在北京字节跳动有限公司上班", FIRM, "北京字节跳动有限公司"),
        ("ship to 221B Baker Street, London", ADDRESS, "221B Baker Street, London"),
        ("at 1600 Amphitheatre Pkwy or 12 N. Main St Apt 4, Springfield, IL 62704", ADDRESS, None),
        (
            "住在浙江省杭州市西湖区文三路478号3栋201室",
            ADDRESS,
            "浙江省杭州市西湖区文三路478号3栋201室",
        ),
    ],
)
def test_a_cue_shows_what_stands_there(text: str, kind: EntityKind, value: str | None) -> None:
    found = [(span.kind, text[span.start : span.end]) for span in EntityDetector().find(text)]
    if value is None:
        assert kind in [each for each, _ in found]
    else:
        assert any(each == kind and value in what for each, what in found)


@pytest.mark.parametrize(
    "text",
    [
        "How do I reset my password?",
        "Dear Customer, this is The Answer.",
        "计算三笔分期的实际年化利率",
        "Version 3.2 of Python runs on Linux.",
        "今天天气怎么样",
        "the way to go is 12 steps",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert EntityDetector().find(text) == ()


def test_they_are_found_only_where_asked_for() -> None:
    text = "my name is Jane Doe, mail jane@example.com"
    assert [span.kind for span in open_detector(entities=False).find(text)] == ["EMAIL"]
    assert [span.kind for span in open_detector(entities=True).find(text)] == ["PERSON", "EMAIL"]


def test_they_are_measured_apart() -> None:
    text = "my name is Jane Doe, mail jane@example.com"
    case = Case(text, (Label("PERSON", 11, 19), Label("EMAIL_ADDRESS", 26, 42)))
    scores = evaluate_entities([case], EntityDetector())
    assert {kind: score.hits for kind, score in scores.items()} == {"PERSON": 1}


@pytest.mark.parametrize("piece", ["Aa ", "王", "1 Aa ", "A. ", "北京市海淀区", "AB & "])
def test_long_repeats_take_bounded_time(piece: str) -> None:
    began = time.perf_counter()
    EntityDetector().find(piece * (20_000 // len(piece)))
    # Quadratic matching would take minutes; a busy machine some seconds.
    assert time.perf_counter() - began < 20.0
