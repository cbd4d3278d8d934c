"""Rows that wait in memory, on disk too, so that a killed router loses none of them.

A row is written when it is taken: one `write` into the page cache, without fsync. That outlives
the process (SIGKILL, out of memory), not the host; the store and the spool are for that. Once
its rows are in either, a segment is emptied. What a killed router leaves is taken over as
segments of the spool, and stored once, by row id.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import structlog

from services.router.ledger.entry import Entry

_log = structlog.get_logger()
SUFFIX = ".journal"
_SEGMENT_BYTES = 256 * 1024


@dataclass(eq=False, slots=True)
class _Segment:
    """One file; `left` counts its rows that are not safe elsewhere."""

    path: Path
    file: int
    size_bytes: int = 0
    left: int = 0


class Journal:
    """Used on the event loop alone, but for `open`. A disk that fails is said once, and no error.

    Args:
        folder: The spool's, which is of this process alone.
        segment_bytes: From this size on the next row begins another file.
    """

    def __init__(self, folder: Path, segment_bytes: int = _SEGMENT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._number = 0
        self._newest: _Segment | None = None
        self._waiting: dict[str, _Segment] = {}
        self._failed = False

    def note(self, entry: Entry) -> None:
        """Writes a row that was taken into the queue; a verdict is waited for, and not noted."""
        if entry.row is None:
            return
        try:
            segment = self._segment()
            line = entry.line().encode()
            os.write(segment.file, line)
        except OSError as error:
            if not self._failed:
                _log.warning("ledger_journal_failed", error=error.strerror)
            self._failed = True
            return
        self._failed = False
        segment.size_bytes += len(line)
        segment.left += 1
        self._waiting[entry.row["row_id"]] = segment

    def kept(self, entry: Entry) -> None:
        """The row is in the store, in the spool, or in the log."""
        segment = self._waiting.pop(entry.row["row_id"], None) if entry.row is not None else None
        if segment is None:
            return
        segment.left -= 1
        if segment.left:
            return
        if segment is self._newest:
            os.ftruncate(segment.file, 0)
            segment.size_bytes = 0
        else:
            self._drop(segment)

    def close(self) -> None:
        """What is not safe elsewhere stays for the next process."""
        if self._newest is not None and not self._newest.left:
            self._drop(self._newest)
        for segment in {*self._waiting.values()}:
            os.close(segment.file)
        self._waiting.clear()
        self._newest = None

    def _segment(self) -> _Segment:
        if self._newest is None or self._newest.size_bytes >= self._segment_bytes:
            self._number += 1
            path = self._folder / f"{self._number:012d}{SUFFIX}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC
            self._newest = _Segment(path, os.open(path, flags, 0o600))
        return self._newest

    def _drop(self, segment: _Segment) -> None:
        os.close(segment.file)
        segment.path.unlink(missing_ok=True)
