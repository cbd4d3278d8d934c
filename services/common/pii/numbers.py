"""Numbers that prove themselves: bank cards, Chinese resident ids, US social security numbers."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence

from stdnum.cn import ric

from services.common.pii import context
from services.common.pii.kinds import PiiKind
from services.common.pii.runs import Window
from services.common.pii.span import PiiSpan

# First digits and lengths that networks issue (ISO/IEC 7812 ranges as the networks publish them).
_CARD_FORMS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})"
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"
    r"|3[47]\d{13}"
    r"|3(?:0[0-5]|095|[689]\d)\d{11,16}"
    r"|35(?:2[89]|[3-8]\d)\d{12,15}"
    r"|(?:2131|1800)\d{11}"
    r"|220[0-4]\d{12,15}"
    r"|(?:5018|50[234]\d|5[678]\d\d|6\d{3})\d{8,15}"
    r"|(?:81|82|9558|9792|1030|9400|9843)\d{12,17}"
)
# First digit is the region, the second the province in it (GB/T 2260).
_PROVINCE = re.compile(r"1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[1-3]|91")
# Doubled digits, less 9 where above it (ISO/IEC 7812-1, annex B).
_DOUBLED = {digit: int(digit) * 2 - 9 * (digit > "4") for digit in "0123456789"}
_ID_15_LABEL = re.compile(r"身份证[^\d]{0,12}$")


def find_cards(text: str, windows: Sequence[Window]) -> Iterator[PiiSpan]:
    """12 to 19 digits that pass Luhn and begin as cards do, or are called a card."""
    for window in windows:
        if len(window.digits) < 12 or not _card_shape(window):
            continue
        if not _plain_separators(text, window) or not passes_luhn(window.digits):
            continue
        formed = _CARD_FORMS.fullmatch(window.digits) and not _called_otherwise(text, window)
        if formed or context.names_card(text, window.start):
            yield PiiSpan(PiiKind.BANK_CARD, window.start, window.end)


def passes_luhn(digits: str) -> bool:
    """Whether the check digit is right; a row of one digit repeated is no number."""
    if digits.count(digits[0]) == len(digits):
        return False
    total = sum(map(int, digits[-1::-2])) + sum(_DOUBLED[digit] for digit in digits[-2::-2])
    return total % 10 == 0


def find_resident_ids(text: str, windows: Sequence[Window]) -> Iterator[PiiSpan]:
    """Chinese resident ids: 18 places with a check digit, or the old 15 with a label."""
    for window in windows:
        if not 15 <= len(window.digits) <= 18 or not _plain_separators(text, window):
            continue
        if len(window.digits) == 18 and _is_resident_id(window.digits):
            yield PiiSpan(PiiKind.CN_RESIDENT_ID, window.start, window.end)
        elif len(window.digits) == 17:
            tail = re.match(r"[ -]?[xX](?![A-Za-z0-9])", text[window.end : window.end + 3])
            if tail and _is_resident_id(window.digits + "X"):
                yield PiiSpan(PiiKind.CN_RESIDENT_ID, window.start, window.end + tail.end())
        elif len(window.digits) == 15 and _is_old_id(text, window):
            yield PiiSpan(PiiKind.CN_RESIDENT_ID, window.start, window.end)


def find_ssns(text: str, windows: Sequence[Window]) -> Iterator[PiiSpan]:
    """US social security numbers: 3-2-4 with hyphens, or other forms with a label."""
    for window in windows:
        if len(window.digits) != 9:
            continue
        area, group, serial = window.digits[:3], window.digits[3:5], window.digits[5:]
        if area in ("000", "666") or group == "00" or serial == "0000":
            continue
        labelled = context.names_ssn(text, window.start)
        hyphened = (
            window.sizes == (3, 2, 4) and text[window.start + 3] == text[window.end - 5] == "-"
        )
        if labelled or (hyphened and area < "900" and not _called_otherwise(text, window)):
            yield PiiSpan(PiiKind.US_SSN, window.start, window.end)


def _card_shape(window: Window) -> bool:
    sizes = window.sizes
    return set(sizes) == {1} or (all(size >= 3 for size in sizes[:-1]) and len(sizes) <= 6)


def _plain_separators(text: str, window: Window) -> bool:
    if context.is_fraction(text, window.start):
        return False
    between = text[window.start : window.end]
    return not any(char in "./()·" for char in between)


def _called_otherwise(text: str, window: Window) -> bool:
    """Bare rows of digits may be order numbers; digits in fours are a card even then."""
    grouped = len(window.sizes) > 2
    if context.glued_to_letters(text, window.start, window.end):
        return True
    return not grouped and (
        context.names_code(text, window.start) or context.is_money(text, window.start, window.end)
    )


def _is_resident_id(number: str) -> bool:
    """Province, birth date and check digit; county codes change too often to be held."""
    if not _PROVINCE.match(number) or not _is_date(number[6:14]):
        return False
    return bool(ric.calc_check_digit(number) == number[-1])


def _is_old_id(text: str, window: Window) -> bool:
    number = window.digits
    return (
        _PROVINCE.match(number) is not None
        and _is_date("19" + number[6:12])
        and _ID_15_LABEL.search(context.before(text, window.start)) is not None
    )


def _is_date(digits: str) -> bool:
    try:
        born = datetime.date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return False
    return 1890 <= born.year <= 2100
