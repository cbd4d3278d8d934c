"""`tandem ledger` over both databases."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cli.main import app
from services.router.ledger.entry import Verdict
from services.router.ledger.sql_store import SqlLedgerStore
from tests.integration.router.ledger.test_store import row

runner = CliRunner()


@pytest.fixture
def filled(store: SqlLedgerStore, url: str) -> str:
    now = time.time()
    store.append_many(
        [row(n, at=now - 60.0 * (10 - n), level="L3" if n == 4 else "L0") for n in range(1, 8)]
    )
    store.set_verdict([Verdict("acme", "r4", now, "BAD")])
    return url


def test_query_shows_the_newest_oldest_first(filled: str) -> None:
    shown = runner.invoke(app, ["ledger", "query", "--limit", "3", "--json", "--url", filled])
    assert shown.exit_code == 0, shown.output
    rows = [json.loads(line) for line in shown.output.splitlines()]
    assert [each["request_id"] for each in rows] == ["r5", "r6", "r7"]
    assert rows[0]["attempts"] == [{"index": 0, "level": "L0", "ms": 1.5}]


def test_query_by_age_and_level_as_a_table(filled: str) -> None:
    shown = runner.invoke(
        app,
        ["ledger", "query", "--since", "1h", "--level", "l3", "--url", filled],
        env={"COLUMNS": "200"},
    )
    assert shown.exit_code == 0, shown.output
    assert "r4" in shown.output
    assert "BAD" in shown.output
    assert "r5" not in shown.output


def test_export_writes_every_row_once(
    filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.ledger._PAGE", 2)
    file = tmp_path / "out" / "ledger.parquet"
    done = runner.invoke(app, ["ledger", "export", str(file), "--url", filled])
    assert done.exit_code == 0, done.output
    table = pq.read_table(file).to_pylist()
    assert [each["request_id"] for each in table] == [f"r{n}" for n in range(1, 8)]
    assert [each["verdict"] for each in table][2:4] == [None, "BAD"]
    assert json.loads(table[0]["stage_ms"]) == {"screen": 0.1}
    assert table[0]["at"].tzinfo is not None


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["query", "--since", "soon", "--url", "sqlite:///x.db"], 2, "--since"),
        (["query", "--url", "mysql://root:hunter2@db/x"], 2, "ledger_url"),
        (["query", "--url", "sqlite:////nowhere/ledger.db"], 3, "/nowhere/ledger.db"),
        (["query", "--url", "postgresql://u:hunter2@127.0.0.1:1/x"], 3, "u:***@127.0.0.1:1"),
        (["export", "ledger.csv", "--url", "sqlite:///x.db"], 2, ".parquet"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    arguments: list[str], code: int, words: str
) -> None:
    shown = runner.invoke(app, ["ledger", *arguments])
    assert shown.exit_code == code
    assert words in shown.output
    assert "hunter2" not in shown.output
