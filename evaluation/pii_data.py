"""Reads labelled texts: JSON lines with `text` and `spans`, gzipped or not."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.common.pii.kinds import PiiKind

GZIP_MAGIC = b"\x1f\x8b"
# Names of types in data sets (upper case) and ours; what is not here has no detector and
# is reported apart. Our own names are known as they are.
KIND_OF = {
    **{kind.value: kind for kind in PiiKind},
    "EMAIL_ADDRESS": PiiKind.EMAIL,
    "PHONE_NUMBER": PiiKind.PHONE,
    "MOBILE": PiiKind.PHONE,
    "MOBILE_NUMBER": PiiKind.PHONE,
    "CN_PHONE": PiiKind.PHONE,
    "CN_MOBILE": PiiKind.PHONE,
    "TELEPHONE": PiiKind.PHONE,
    "FAX_NUMBER": PiiKind.PHONE,
    "CN_ID": PiiKind.CN_RESIDENT_ID,
    "CN_ID_CARD": PiiKind.CN_RESIDENT_ID,
    "RESIDENT_ID": PiiKind.CN_RESIDENT_ID,
    "ID_CARD": PiiKind.CN_RESIDENT_ID,
    "CREDIT_CARD": PiiKind.BANK_CARD,
    "CREDIT_CARD_NUMBER": PiiKind.BANK_CARD,
    "BANK_CARD_NUMBER": PiiKind.BANK_CARD,
    "CN_BANK_CARD": PiiKind.BANK_CARD,
    "IBAN_CODE": PiiKind.IBAN,
    "SSN": PiiKind.US_SSN,
    "US_ITIN": PiiKind.US_SSN,
    "IP": PiiKind.IP_ADDRESS,
    "IPV4": PiiKind.IP_ADDRESS,
    "IPV6": PiiKind.IP_ADDRESS,
    "USCC": PiiKind.CN_USCC,
    "CN_PLATE": PiiKind.PLATE,
    "LICENSE_PLATE": PiiKind.PLATE,
    "CN_LICENSE_PLATE": PiiKind.PLATE,
    "PASSPORT_NUMBER": PiiKind.PASSPORT,
    "US_PASSPORT": PiiKind.PASSPORT,
    "CN_PASSPORT": PiiKind.PASSPORT,
    "ACCOUNT_NUMBER": PiiKind.ACCOUNT,
    "BANK_ACCOUNT": PiiKind.ACCOUNT,
    "US_BANK_NUMBER": PiiKind.ACCOUNT,
    "APIKEY": PiiKind.API_KEY,
    "ACCESS_KEY": PiiKind.API_KEY,
    "PASSWORD": PiiKind.SECRET,
    "TOKEN": PiiKind.SECRET,
}


class BadData(Exception):
    """The data cannot be used; the message says where and why, and quotes no text."""


@dataclass(frozen=True, slots=True)
class Label:
    """`text[start:end]` is of this type, by the data's own name."""

    type: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Case:
    """One text and all that stands in it."""

    text: str
    labels: tuple[Label, ...]


def read_cases(path: Path) -> list[Case]:
    """All rows of a file, or none.

    Raises:
        BadData: Not readable, cut, not JSON, or a column is missing; names file and line.
    """
    cases = [_case(f"{path}, line {number}", line) for number, line in _lines(path) if line.strip()]
    if not cases:
        raise BadData(f"{path}: no rows")
    return cases


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


def _case(where: str, line: bytes) -> Case:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise BadData(f"{where}: not JSON (is the file cut?)") from None
    if not isinstance(row, dict):
        raise BadData(f"{where}: not a JSON object")
    for column, kind in (("text", str), ("spans", list)):
        if column not in row:
            raise BadData(f"{where}: the column `{column}` is missing")
        if not isinstance(row[column], kind):
            raise BadData(f"{where}: `{column}` must be a {kind.__name__}")
    text = row["text"]
    return Case(text, tuple(_label(where, i, span, text) for i, span in enumerate(row["spans"])))


def _label(where: str, index: int, span: Any, text: str) -> Label:
    place = f"{where}: spans[{index}]"
    if not isinstance(span, dict):
        raise BadData(f"{place} is not a JSON object")
    for column, kind in (("type", str), ("start", int), ("end", int)):
        if column not in span:
            raise BadData(f"{place}: the column `{column}` is missing")
        if not isinstance(span[column], kind) or isinstance(span[column], bool):
            raise BadData(f"{place}: `{column}` must be a {kind.__name__}")
    start, end = span["start"], span["end"]
    if not 0 <= start < end <= len(text):
        raise BadData(f"{place}: start and end do not lie in the text")
    if span.get("value", text[start:end]) != text[start:end]:
        raise BadData(f"{place}: `value` is not what stands there")
    return Label(span["type"].upper(), start, end)
