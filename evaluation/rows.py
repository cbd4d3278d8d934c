"""Reads data sets: JSON lines, gzipped or not, with errors that name file and line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

GZIP_MAGIC = b"\x1f\x8b"
_T = TypeVar("_T")


class BadData(Exception):
    """The data cannot be used; the message says where and why, and quotes no text."""


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object of a file.

    Attributes:
        where: File and line, for messages.
    """

    where: str
    values: dict[str, Any]

    def get(self, column: str, kind: type[_T]) -> _T:
        """The column's value.

        Raises:
            BadData: It is missing or of another type; a truth value is no number.
        """
        if column not in self.values:
            raise BadData(f"{self.where}: the column `{column}` is missing")
        value = self.values[column]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BadData(f"{self.where}: `{column}` must be a {kind.__name__}")
        return value

    def number(self, column: str) -> float:
        """A number, whole or not.

        Raises:
            BadData: It is missing or something else.
        """
        value = self.values.get(column)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if column not in self.values:
            raise BadData(f"{self.where}: the column `{column}` is missing")
        raise BadData(f"{self.where}: `{column}` must be a number")

    def truth(self, column: str) -> bool:
        """A verdict: true or false, 1 or 0.

        Raises:
            BadData: It is missing or something else.
        """
        value = self.values.get(column)
        if value in (True, False) and isinstance(value, int | float):
            return bool(value)
        if column not in self.values:
            raise BadData(f"{self.where}: the column `{column}` is missing")
        raise BadData(f"{self.where}: `{column}` must be true, false, 1 or 0")


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file, one after the other; blank lines are passed over.

    Raises:
        BadData: Not readable, cut, not JSON, or without any row; names file and line.
    """
    found = False
    for number, line in _lines(path):
        if line.strip():
            found = True
            yield _row(f"{path}, line {number}", line)
    if not found:
        raise BadData(f"{path}: no rows")


def _row(where: str, line: bytes) -> Row:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        raise BadData(f"{where}: not JSON (is the file cut?)") from None
    if not isinstance(values, dict):
        raise BadData(f"{where}: not a JSON object")
    return Row(where, values)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            rows = gzip.GzipFile(fileobj=raw) if packed else raw
            for number, line in enumerate(rows, 1):
                yield number, line
    except EOFError:
        raise BadData(f"{path}, after line {number}: the gzip file is cut") from None
    except (gzip.BadGzipFile, zlib.error):
        raise BadData(f"{path}, after line {number}: the gzip file is damaged") from None
    except OSError as error:
        raise BadData(f"{path}: {error.strerror or 'cannot be read'}") from None
