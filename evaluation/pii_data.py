"""Reads labelled texts: JSON lines with `text` and `spans`, gzipped or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.rows import BadData, Row, read_rows
from services.common.pii.entities import EntityKind
from services.common.pii.kinds import PiiKind

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


# Kinds that rules for free text find; measured apart, never pooled with the structured ones.
ENTITY_OF = {
    "PERSON": EntityKind.PERSON,
    "NAME": EntityKind.PERSON,
    "ORGANIZATION": EntityKind.ORGANIZATION,
    "ORG": EntityKind.ORGANIZATION,
    "STREET_ADDRESS": EntityKind.ADDRESS,
    "ADDRESS": EntityKind.ADDRESS,
}


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
    return [_case(row) for row in read_rows(path)]


def _case(row: Row) -> Case:
    text, spans = row.get("text", str), row.get("spans", list)
    return Case(text, tuple(_label(row.where, i, span, text) for i, span in enumerate(spans)))


def _label(where: str, index: int, values: Any, text: str) -> Label:
    place = f"{where}: spans[{index}]"
    if not isinstance(values, dict):
        raise BadData(f"{place} is not a JSON object")
    span = Row(place, values)
    kind, start, end = span.get("type", str), span.get("start", int), span.get("end", int)
    if not 0 <= start < end <= len(text):
        raise BadData(f"{place}: start and end do not lie in the text")
    if values.get("value", text[start:end]) != text[start:end]:
        raise BadData(f"{place}: `value` is not what stands there")
    return Label(kind.upper(), start, end)
