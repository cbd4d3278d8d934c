"""Keeps what arrived, for whoever wants to see what left the trust zone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any


class BodyLog:
    """Appends each request body to a file as a JSON line; without a file it does nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = asyncio.Lock()

    async def append(self, body: Any) -> None:
        """Keeps one body; returns when it is in the file."""
        if self._path is not None:
            line = json.dumps(body, ensure_ascii=False) + "\n"
            async with self._lock:
                await asyncio.to_thread(self._write, self._path, line)

    @staticmethod
    def _write(path: Path, line: str) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(line)
