"""Telephone numbers: international, Chinese, North American, and any that is called one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import phonenumbers

from services.common.pii import context
from services.common.pii.kinds import PiiKind
from services.common.pii.runs import Run, Window, whole
from services.common.pii.span import PiiSpan

_EXTENSION = re.compile(r"\s?(?:x|ext\.?|extension|转|分机)\s?\d{1,6}(?!\d)", re.IGNORECASE)
_CN_MOBILE = re.compile(r"(?:86)?1[3-9]\d{9}")
_CN_LANDLINE = re.compile(r"0(?:10|2\d|[3-9]\d{2})[2-8]\d{6,7}")
_CN_SERVICE = re.compile(r"[48]00\d{7}")
# Where a leading 0 is the trunk prefix and people write numbers in groups.
_TRUNK_REGIONS = (
    "CN",
    "GB",
    "FR",
    "DE",
    "CH",
    "BE",
    "SE",
    "FI",
    "AT",
    "NL",
    "AU",
    "ZA",
    "JP",
    "IT",
)
_MIN_DIGITS, _MAX_DIGITS = 7, 15


def find_phones(text: str, run: Run, windows: Sequence[Window]) -> Iterator[PiiSpan]:
    """The telephone numbers of one run of digits: the whole of it, else parts of it."""
    size = sum(end - start for start, end in run.groups)
    if _MIN_DIGITS <= size <= _MAX_DIGITS + 3:
        all_of_it = whole(text, run)
        if _is_phone(text, all_of_it):
            yield _span(text, all_of_it)
            return
    for window in windows:
        if not 10 <= len(window.digits) <= 13:
            continue
        if _is_cn_mobile(text, window) or (len(run.groups) > 3 and _is_nanp(text, window)):
            yield _span(text, window)


def _span(text: str, window: Window) -> PiiSpan:
    start, end = window.start, window.end
    while start > 0 and text[start - 1] in "+(":
        start -= 1
    extension = _EXTENSION.match(text[end : end + 16])
    return PiiSpan(PiiKind.PHONE, start, end + (extension.end() if extension else 0))


def _is_phone(text: str, window: Window) -> bool:
    if _is_cn_mobile(text, window) or _is_international(text, window):
        return True
    extended = _EXTENSION.match(text[window.end : window.end + 16])
    if not extended and context.glued_to_letters(text, window.start, window.end):
        return False
    if context.is_money(text, window.start, window.end):
        return False
    if context.names_phone(text, window.start, window.end):
        return len(window.digits) <= _MAX_DIGITS
    if context.names_code(text, window.start):
        return False
    return _is_nanp(text, window) or _is_trunk(window) or _is_cn_service(window)


def _is_cn_mobile(text: str, window: Window) -> bool:
    if not _CN_MOBILE.fullmatch(window.digits) or not _grouped_as_mobile(window.sizes):
        return False
    if context.names_phone(text, window.start, window.end):
        return True
    return not (
        context.names_code(text, window.start)
        or context.is_money(text, window.start, window.end)
        or context.glued_to_letters(text, window.start, window.end)
        or context.is_fraction(text, window.start)
    )


def _grouped_as_mobile(sizes: tuple[int, ...]) -> bool:
    """Three groups at most after the country code, or each digit apart; no list of numbers."""
    groups = sizes[1:] if sizes[0] == 2 else sizes
    return set(sizes) == {1} or all(size >= 3 for size in groups)


def _is_international(text: str, window: Window) -> bool:
    plus = re.search(r"(?<![\w)])\+\(?$", text[max(0, window.start - 3) : window.start])
    digits = window.digits
    if plus is None:
        if not digits.startswith("00") or len(window.sizes) < 2:
            return False
        if window.sizes[0] < 3 or context.names_code(text, window.start):
            return False
        digits = digits[2:]
    try:
        number = phonenumbers.parse("+" + _without_trunk_zero(text, window, digits))
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_possible_number(number)


def _without_trunk_zero(text: str, window: Window, digits: str) -> str:
    """`+46 (0)8 928` is dialled without the bracketed zero."""
    if "(0)" not in text[window.start : window.end]:
        return digits
    code = window.sizes[0] - (len(window.digits) - len(digits))
    return digits[:code] + digits[code + 1 :]


def _is_nanp(text: str, window: Window) -> bool:
    digits, sizes = window.digits, window.sizes
    if len(digits) == 11 and digits[0] == "1" and sizes[0] == 1:
        digits, sizes = digits[1:], sizes[1:]
    if sizes != (3, 3, 4) or context.names_code(text, window.start):
        return False
    return digits[0] in "23456789" and digits[3] in "23456789"


def _is_trunk(window: Window) -> bool:
    if window.digits[0] != "0" or window.sizes[0] < 2 or not 9 <= len(window.digits) <= 12:
        return False
    if len(window.sizes) == 2:
        # Two groups are a street number and a box as often as a telephone number.
        return _CN_LANDLINE.fullmatch(window.digits) is not None and window.sizes[1] >= 7
    if len(window.sizes) < 2:
        return False
    for region in _TRUNK_REGIONS:
        try:
            number = phonenumbers.parse(window.digits, region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number):
            return True
    return False


def _is_cn_service(window: Window) -> bool:
    return len(window.sizes) == 3 and _CN_SERVICE.fullmatch(window.digits) is not None
