"""The ledger: one row per request, written off the request's way.

Rows go to a bounded queue and from there, in batches, to a file of JSON lines. A
disk that fails costs log lines and a counter, never a request. (The SQL stores
take this place behind the same two methods.)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import structlog

_log = structlog.get_logger()
_MAX_QUEUED = 10_000
_MAX_BATCH = 500

Row = Mapping[str, Any]


class Ledger(Protocol):
    """Where rows go."""

    def append(self, row: Row) -> None:
        """Takes a row; returns at once and never raises."""


class JsonLinesLedger:
    """Appends rows to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: asyncio.Queue[Row | None] = asyncio.Queue(_MAX_QUEUED)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to write, on the running loop."""
        self._task = asyncio.create_task(self._write(), name="ledger")

    async def stop(self) -> None:
        """Writes what is queued and ends."""
        if self._task is not None:
            await self._queue.put(None)
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def append(self, row: Row) -> None:
        """See `Ledger`. A row that does not fit is logged, so that it is not lost without trace."""
        try:
            self._queue.put_nowait(row)
        except asyncio.QueueFull:
            _log.error("ledger_full", row=dict(row))

    async def _write(self) -> None:
        going = True
        while going:
            batch: list[Row] = []
            row = await self._queue.get()
            while row is not None:
                batch.append(row)
                if len(batch) >= _MAX_BATCH or self._queue.empty():
                    break
                row = self._queue.get_nowait()
            going = row is not None
            if batch:
                await self._save(batch)

    async def _save(self, batch: list[Row]) -> None:
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in batch)
        try:
            await asyncio.to_thread(_append_text, self._path, text)
        except OSError as exc:
            for row in batch:
                _log.error("ledger_write_failed", error=str(exc), row=dict(row))


def _append_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
