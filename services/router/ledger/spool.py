"""Where entries wait on disk while the store is down: segments of JSON lines, oldest first."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

import structlog

from services.common.errors import ConfigInvalid
from services.router.ledger.entry import Entry, read_entry
from services.router.ledger.journal import SUFFIX as JOURNAL_SUFFIX

_log = structlog.get_logger()
_SEGMENT_BYTES = 1024 * 1024
_SUFFIX = ".jsonl"


class SpoolFull(Exception):
    """The spool holds as much as it may."""


class Spool:
    """Blocking; one thread at a time. Each segment is read whole, then deleted.

    Args:
        folder: Of this process alone while it runs.
        max_bytes: Bound of all segments together.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._sizes: dict[Path, int] = {}
        self._newest: Path | None = None  # None: the next entry begins a segment
        self._number = 0
        self._lock: int | None = None

    def open(self) -> None:
        """Takes the folder and finds what an earlier process left.

        Raises:
            ConfigInvalid: Another process has it, or it cannot be made.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            self.close()
            raise ConfigInvalid("ledger_spool_dir: another router uses it") from exc
        except OSError as exc:
            raise ConfigInvalid(f"ledger_spool_dir: cannot be used: {exc.strerror}") from exc
        found = sorted(self._folder.glob(f"*{_SUFFIX}"))
        found += self._taken_over(int(found[-1].stem) if found else 0)
        self._sizes = {path: path.stat().st_size for path in found}
        # An earlier process may have been cut off inside a line: its segments are only read.
        self._number = int(found[-1].stem) if found else 0

    def _taken_over(self, number: int) -> list[Path]:
        """What a killed process had noted becomes segments behind `number`."""
        found = []
        for left in sorted(self._folder.glob(f"*{JOURNAL_SUFFIX}")):
            number += 1
            found.append(left.rename(self._folder / f"{number:012d}{_SUFFIX}"))
        return found

    def close(self) -> None:
        """Lets go of the folder; what it holds stays."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def size_bytes(self) -> int:
        """Of all segments."""
        return sum(self._sizes.values())

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._sizes

    def append(self, entries: Sequence[Entry]) -> None:
        """Writes entries, all or none as far as this process can tell, and fsyncs.

        Raises:
            SpoolFull: They do not fit.
            OSError: The disk failed.
        """
        data = "".join(entry.line() for entry in entries).encode()
        if self.size_bytes + len(data) > self._max_bytes:
            raise SpoolFull
        path = self._segment()
        try:
            with path.open("ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            self._newest = None  # it may end inside a line
            raise
        self._sizes[path] = self._sizes.get(path, 0) + len(data)
        if self._sizes[path] >= _SEGMENT_BYTES:
            self._newest = None

    def oldest(self) -> tuple[Path, list[Entry]]:
        """The oldest segment and its entries; later ones go to another segment."""
        path = min(self._sizes)
        if path == self._newest:
            self._newest = None
        return path, _read(path)

    def segments(self) -> list[Path]:
        """All, oldest first."""
        return sorted(self._sizes)

    def entries(self, path: Path) -> list[Entry]:
        """What a segment holds."""
        return _read(path)

    def delete(self, path: Path) -> None:
        """After its entries were stored."""
        path.unlink(missing_ok=True)
        self._sizes.pop(path, None)

    def _segment(self) -> Path:
        if self._newest is None:
            self._number += 1
            self._newest = self._folder / f"{self._number:012d}{_SUFFIX}"
            self._newest.touch(mode=0o600)
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        return self._newest


def _read(path: Path) -> list[Entry]:
    entries, bad = [], 0
    for line in path.read_bytes().splitlines():
        try:
            entries.append(read_entry(line.decode()))
        except ValueError:
            bad += 1
    if bad:
        # A process that was killed while it wrote leaves at most one.
        _log.error("ledger_spool_lines_unreadable", segment=path.name, lines=bad)
    return entries
