"""Relative cost: the formula, the tokens and the ledger agree where they should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from evaluation.cost import Prices, break_even, cost_report, relative_cost
from evaluation.rows import BadData
from tests.unit.evaluation.ledger_rows import row, write_ledger

RUN = CliRunner()


def traffic(count: int = 100, escalated: int = 20) -> list[dict[str, Any]]:
    """Requests of 200 tokens in and 50 out on average; payloads trimmed to half."""
    rows = []
    for i in range(count):
        before, out = 160.0 + 80 * (i % 2), 40.0 + 20 * (i % 3 == 0)
        edge = {"target": "EDGE", "input_tokens": before, "output_tokens": out}
        tokens = {"input_tokens": before / 2, "output_tokens": out}
        price = round(before / 2 * 3.0 + out * 15.0)
        cloud: dict[str, Any] = {"target": "CLOUD_SMALL", "cost_micro_usd": price, **tokens}
        tried = (
            [edge, cloud | {"payload_tokens": [before, before / 2]}] if i < escalated else [edge]
        )
        rows.append(row(i, str(tried[-1]["target"]), tried))
    return rows


def test_prices_and_shares_come_from_the_ledger(tmp_path: Path) -> None:
    found = cost_report(write_ledger(tmp_path / "a.parquet", traffic()), None)
    assert found.prices.input_token == pytest.approx(3.0, abs=0.01)
    assert found.prices.output_token == pytest.approx(15.0, abs=0.01)
    assert found.escalation == 0.2
    assert found.trim == pytest.approx(0.5)
    assert found.by_tokens == pytest.approx(found.ledger, rel=1e-3)
    assert found.formula == pytest.approx(found.ledger, rel=0.03)
    assert found.formula == relative_cost(0.2, found.trim, found.input_share)


def test_nothing_escalated_costs_nothing(tmp_path: Path) -> None:
    file = write_ledger(tmp_path / "a.parquet", traffic(escalated=0))
    found = cost_report(file, Prices(3.0, 15.0, from_ledger=False))
    assert (found.formula, found.ledger, found.recorded_usd) == (0.0, 0.0, 0.0)
    with pytest.raises(BadData, match="too few cloud attempts to tell prices from"):
        cost_report(file, None)


def test_break_even() -> None:
    assert break_even(0.001, 200.0, 500_000).requests_a_month == pytest.approx(200_000)
    assert break_even(0.001, 200.0, 500_000).usd_a_month == pytest.approx(300.0)
    assert break_even(-0.001, 200.0, 10).requests_a_month is None


def test_the_command(tmp_path: Path) -> None:
    file = write_ledger(tmp_path / "a.parquet", traffic())
    done = RUN.invoke(app, ["cost", "--data", str(file), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["escalation"] == 0.2
    shown = RUN.invoke(app, ["cost", "--data", str(file), "--fixed-usd", "200"]).stdout
    assert "the edge pays from" in shown
    assert RUN.invoke(app, ["cost", "--data", str(file), "--input-price", "1"]).exit_code == 2
