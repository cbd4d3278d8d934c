"""docs/metrics.md, dashboards and alerts name what the code makes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from scripts.dashboards import DASHBOARDS, FOLDER, written
from scripts.manifests import ROOT
from tests.tools.declared_metrics import declared, series

_ROW = re.compile(r"^\| `([\w.]+)` \| (\w+) \|([^|]*)\|([^|]*)\| (.+) \|$", re.MULTILINE)
PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
ROWS = {name: rest for name, *rest in _ROW.findall(PAGE)}

LABELS = {name: set(re.findall(r"`([\w.]+)`", rest[2])) for name, rest in ROWS.items()}
_LABEL_LISTS = re.compile(r"\{[^}]*\}|\b(?:by|on|without) \([^)]*\)")


def named(expression: str) -> set[str]:
    """Metrics that a PromQL expression names."""
    return set(re.findall(r"\b(?:tandem|rpc|process)_\w+|\bup\b", _LABEL_LISTS.sub("", expression)))


def expressions() -> list[str]:
    """All PromQL that is shipped."""
    groups = yaml.safe_load((ROOT / "deploy/prometheus/rules.yaml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]] + [
        expression
        for board in FOLDER.glob("*.json")
        for expression in told(json.loads(board.read_text()))
    ]


def told(board: Any) -> list[str]:
    """PromQL of a dashboard: panels and marks."""
    panels = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    return panels + [mark["expr"] for mark in board["annotations"]["list"]]


def test_the_page_has_every_metric_and_no_other() -> None:
    assert set(ROWS) == set(declared())


def test_kind_and_unit_are_the_codes() -> None:
    told = {name: (kind, unit.strip()) for name, (kind, unit, _, _) in ROWS.items()}
    assert told == {name: (each.kind, each.unit) for name, each in declared().items()}


def test_each_is_described_in_the_code() -> None:
    assert [name for name, each in declared().items() if not each.description] == []


def test_alerts_name_what_exists_and_the_run_book_tells_each_in_order() -> None:
    groups = yaml.safe_load((ROOT / "deploy/prometheus/rules.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    for rule in rules:
        assert named(rule["expr"]) <= series() | {"up"}, rule["alert"]
        assert named(rule["expr"]), rule["alert"]
    book = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    assert re.findall(r"^### (\w+)$", book, re.MULTILINE) == [rule["alert"] for rule in rules]


def test_labels_in_alerts_and_dashboards_are_those_of_the_metric() -> None:
    known = {label.replace(".", "_") for labels in LABELS.values() for label in labels}
    for expression in expressions():
        assert set(re.findall(r"(?:tandem|gen_ai|rpc)_\w+(?==|!)", expression)) <= known


@pytest.mark.parametrize("name", DASHBOARDS)
def test_dashboards_are_as_written_and_name_what_exists(name: str) -> None:
    """Where this fails: python -m scripts.dashboards."""
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert text == written(name)
    board = json.loads(text)
    for expression in told(board):
        assert named(expression), expression
        assert named(expression) <= series() | {"up", "process_resident_memory_bytes"}, expression
