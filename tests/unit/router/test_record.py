"""The row of a request: its columns exist in the store, and it holds no text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.router.execute.trail import Trail
from services.router.ledger.entry import read_entry, row_entry
from services.router.ledger.schema import COLUMNS
from services.router.record import Recorder
from tests.unit.router.test_executor import make_ask


class Rows:
    """A ledger in a list."""

    def __init__(self) -> None:
        self.rows: list[Mapping[str, Any]] = []

    def append(self, row: Mapping[str, Any]) -> None:
        self.rows.append(row)


def recorded() -> Mapping[str, Any]:
    ledger, ask = Rows(), make_ask()
    Recorder(ledger).record(ask, Trail(), "v1", ask.budget.expires_at)
    (row,) = ledger.rows
    return row


def test_every_value_has_a_column() -> None:
    """Where this fails: schema.py, and a migration beside it."""
    assert set(recorded()) <= COLUMNS


def test_a_row_survives_the_way_over_the_disk() -> None:
    entry = row_entry(recorded())
    assert read_entry(entry.line()) == entry
