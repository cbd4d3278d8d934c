"""A file that is read anew when it changes, without a restart."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import structlog
from opentelemetry import metrics

from services.common.errors import ConfigInvalid, TandemError
from services.common.telemetry import names

_log = structlog.get_logger()
T = TypeVar("T")
_Signature = tuple[int, int, int]
CHECK_S = 1.0


class WatchedFile(Generic[T]):
    """The parsed content of a file, at most a second old.

    A change is seen by time, inode and size behind any symlink, so that both a rename over
    the file and Kubernetes' swap of a folder's symlink count. Replace the file in one of
    these ways: one that is written in place may be read half. What cannot be parsed leaves
    the old content in force, and is logged once.

    Args:
        path: The file.
        parse: Reads it; a `TandemError` says what is wrong with it.
        clock: Monotonic seconds.

    Raises:
        ConfigInvalid: The file is wrong at the start.
    """

    def __init__(
        self, path: Path, parse: Callable[[Path], T], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._parse = parse
        self._clock = clock
        self._signature = self._look()
        self._content = parse(path)
        self._next_check = clock() + CHECK_S
        self._reloads = metrics.get_meter("tandem.auth").create_counter(
            names.FILE_RELOADS, description="Files read anew while serving, by outcome"
        )

    def get(self) -> T:
        """The content; looks at the file at most once a second."""
        now = self._clock()
        if now >= self._next_check:
            self._next_check = now + CHECK_S
            self._reload()
        return self._content

    def _reload(self) -> None:
        try:
            signature = self._look()
        except ConfigInvalid as error:
            # As good as a bad file; told once until it is there again.
            signature, problem = None, error.message
        else:
            problem = ""
        if signature == self._signature:
            return
        self._signature = signature
        try:
            if problem:
                raise ConfigInvalid(problem)
            self._content = self._parse(self._path)
            self._reloads.add(1, {names.OUTCOME: "OK"})
            _log.info("file_reloaded", file=str(self._path))
        except TandemError as error:
            self._reloads.add(1, {names.OUTCOME: error.reason})
            _log.error("file_reload_failed", file=str(self._path), error=error.message)

    def _look(self) -> _Signature | None:
        try:
            found = self._path.stat()
        except OSError as exc:
            raise ConfigInvalid(f"{self._path}: cannot be read") from exc
        return (found.st_mtime_ns, found.st_ino, found.st_size)
