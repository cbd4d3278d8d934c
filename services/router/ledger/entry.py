"""What goes into the ledger: rows and verdicts. No text of requests, ever."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

Row = Mapping[str, Any]


class Ledger(Protocol):
    """Where rows go."""

    def append(self, row: Row) -> None:
        """Takes a row; returns at once and never raises."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A caller's judgement on one of its answers.

    Attributes:
        at: When it came, seconds since the epoch; of two the later one stands.
        verdict: GOOD, BAD or CORRECTED.
        corrected_text: Redacted, and only of tenants that opted in to samples; else empty.
    """

    tenant: str
    request_id: str
    at: float
    verdict: str
    corrected_text: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row or a verdict on its way to the store; exactly one of the two is set."""

    row: Row | None = None
    verdict: Verdict | None = None

    def line(self) -> str:
        """One JSON line. NUL, which PostgreSQL refuses in text, becomes U+FFFD."""
        data = {"verdict": asdict(self.verdict)} if self.verdict else {"row": dict(self.row or {})}
        text = json.dumps(data, separators=(",", ":"), default=str)
        return text.replace("\\u0000", "\\ufffd") + "\n"


def row_entry(row: Row) -> Entry:
    """Gives a row the id by which it is stored once.

    The request id cannot serve: callers choose it, and may send one twice.
    """
    return Entry(row={"row_id": uuid.uuid4().hex, **row})


def read_entry(line: str) -> Entry:
    """The entry of a JSON line.

    Raises:
        ValueError: It is none.
    """
    data = json.loads(line)
    if isinstance(data, dict) and isinstance(data.get("row"), dict):
        return Entry(row=data["row"])
    if isinstance(data, dict) and isinstance(data.get("verdict"), dict):
        try:
            return Entry(verdict=Verdict(**data["verdict"]))
        except TypeError as exc:
            raise ValueError("not a verdict") from exc
    raise ValueError("neither a row nor a verdict")


def plain(entry: Entry) -> Entry:
    """As it would come back from the spool, so that both ways store the same values."""
    return read_entry(entry.line())
