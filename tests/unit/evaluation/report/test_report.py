"""The page: whole, alone, and with the figures that it was given."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from evaluation.report.summary import summarize
from evaluation.rows import BadData
from tests.unit.evaluation.judged_rows import judged, write_lines
from tests.unit.evaluation.ledger_rows import row, write_ledger
from tests.unit.evaluation.test_cost import traffic

RUN = CliRunner()
DAY_US = 86_400_000_000


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.uses: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href"):
                self.uses.append(value or "")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    rows = [one | {"at": i * DAY_US // 20, "verdict": "GOOD"} for i, one in enumerate(traffic())]
    ledger = write_ledger(folder / "ledger.parquet", rows)
    file = write_lines(folder / "judged.jsonl", judged(600, task="<task>"))
    out = folder / "made" / "page.html"
    done = RUN.invoke(
        app,
        ["report", "--data", str(ledger), "--judged", str(file), "--policy", "config/policy.yaml",
         "--target", "0.8", "--note", "stand-in & all", "--out", str(out)],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return out.read_text()


def test_it_needs_nothing_else(page: str) -> None:
    seen = _Seen()
    seen.feed(page)
    assert "script" not in seen.tags
    assert all(one.startswith(("#", "data:")) for one in seen.uses), seen.uses
    assert "@import" not in page and not re.search(r"url\((?!#)", page)
    assert len(seen.ids) == len(set(seen.ids)), "ids of two pictures collide"
    assert {one[1:] for one in seen.uses if one.startswith("#")} <= set(seen.ids)


def test_ink_follows_light_and_dark(page: str) -> None:
    assert "prefers-color-scheme:dark" in page and "@media print" in page
    assert "currentColor" in page
    assert not re.search("#010203|#040506|#000000", page)


def test_every_part_is_there_and_escaped(page: str) -> None:
    for part in ("By day", "By task", "Against the cloud alone", "Another policy", "Calibration: ",
                 "Thresholds: "):  # fmt: skip
        assert part in page
    assert "stand-in &amp; all" in page
    assert "&lt;task&gt;" in page
    assert "<task>" not in page


def test_figures_by_day_and_task(tmp_path: Path) -> None:
    rows = [
        row(0, "EDGE", [{"target": "EDGE"}], at=0, verdict="GOOD", total_ms=100.0),
        row(1, "CLOUD_SMALL", [{"target": "CLOUD_SMALL", "cost_micro_usd": 500_000}], at=1,
            verdict="BAD", total_ms=300.0, task_type="other"),
        row(2, "EDGE", [{"target": "EDGE"}], at=DAY_US, total_ms=200.0),
    ]  # fmt: skip
    found = summarize(write_ledger(tmp_path / "a.parquet", rows))
    assert [(line.name, line.requests) for line in found.days] == [
        ("1970-01-01", 2),
        ("1970-01-02", 1),
    ]
    assert found.days[0].cost_usd == 0.5
    assert [line.name for line in found.tasks] == ["open_question", "other"]
    total = found.total
    assert total.escalation == pytest.approx(1 / 3)
    assert (total.verdicts, total.good) == (2, 0.5)
    with pytest.raises(BadData, match="no rows"):
        summarize(write_ledger(tmp_path / "b.parquet", []))


def test_json_and_no_half_page(tmp_path: Path) -> None:
    ledger = write_ledger(tmp_path / "a.parquet", traffic())
    done = RUN.invoke(app, ["report", "--data", str(ledger), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["summary"]["total"]["requests"] == 100
    out = tmp_path / "page.html"
    few = write_lines(tmp_path / "few.jsonl", judged(5))
    done = RUN.invoke(
        app, ["report", "--data", str(ledger), "--judged", str(few), "--out", str(out)]
    )
    assert done.exit_code == 2
    assert "5 rows" in done.stderr
    assert not out.exists()
