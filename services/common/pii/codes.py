"""Addresses and codes with letters: e-mail, IP, IBAN, company codes, plates, labelled numbers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from stdnum import iban
from stdnum.cn import uscc

from services.common.pii.kinds import PiiKind
from services.common.pii.span import PiiSpan

# Letters of European scripts belong to addresses; Chinese ones beside it do not.
_LETTER = "A-Za-z0-9À-ʯͰ-ӿ"
_EMAIL = re.compile(
    rf"(?<![{_LETTER}._%+\-])[{_LETTER}_][{_LETTER}._%+'\-]{{0,63}}@"
    rf"(?:[{_LETTER}](?:[{_LETTER}\-]{{0,61}}[{_LETTER}])?\.){{1,8}}[A-Za-zÀ-ʯͰ-ӿ]{{2,24}}"
    rf"(?![{_LETTER}@])"
)
_IPV4 = re.compile(
    r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w]|\.\d)",
    re.ASCII,
)
_VERSION = re.compile(r"(?:version|release|build|\bver\.?|\bv|版本|版)[^\d]{0,6}$", re.IGNORECASE)
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])", re.ASCII)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d\d(?:[ -]?[A-Za-z0-9]){11,30}")
_USCC = re.compile(r"(?<![A-Za-z0-9])[1-9AN-Y][1-9]\d{6}[0-9A-HJ-NPQRTUWXY]{10}(?![A-Za-z0-9])")
# Eighteen digits with a birth date are a resident id, or a wrong one.
_DATED = re.compile(r"\d{6}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dX]")
_PLATE = re.compile(
    r"[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼][A-HJ-Za-hj-z] ?[·•.・\-]? ?"
    r"(?:[DFdf][A-HJ-NP-Za-hj-np-z0-9]\d{4}|\d{5}[DFdf]"
    r"|(?=[A-Za-z]{0,4}\d)[A-HJ-NP-Za-hj-np-z0-9]{4}[A-HJ-NP-Za-hj-np-z0-9挂学警港澳])(?![A-Za-z0-9])"
)
_OF = r"(?:\s*(?:no\.?|num(?:ber)?|nr|id|#|is|was|号码?|是|为|尾号|[:：=#\-（(])){0,4}\s*"
_PASSPORT = re.compile(
    rf"(?:passport|护照|通行证|台胞证|回乡证){_OF}([A-Za-z]{{0,2}}\d{{6,9}}[A-Za-z]?)(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_ACCOUNT = re.compile(
    rf"(?:\baccount|\bacct\.?|\ba/c|\biban|routing|sort code|账号|帐号|账户|帐户|户头){_OF}"
    r"(\d(?:[ -]?\d){5,29})(?![\d.]?\d|[A-Za-z])",
    re.IGNORECASE,
)
# Countries by length, from the SWIFT registry of IBAN formats.
_IBAN_COUNTRIES = {
    15: "NO",
    16: "BE",
    18: "DK FI FO GL NL SD",
    19: "MK SI",
    20: "AT BA EE KZ LT LU XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST",
    26: "IS TR",
    27: "FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HU LB PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU",
    31: "MT SC",
    32: "LC",
}
_IBAN_LENGTHS = {
    country: size for size, countries in _IBAN_COUNTRIES.items() for country in countries.split()
}


def find_emails(text: str) -> Iterator[PiiSpan]:
    """E-mail addresses; Chinese characters beside them are not taken along."""
    if "@" in text:
        for found in _EMAIL.finditer(text):
            yield PiiSpan(PiiKind.EMAIL, *found.span())


def find_ips(text: str) -> Iterator[PiiSpan]:
    """IPv4 and IPv6 addresses of hosts: no loopback, no version numbers."""
    for found in _IPV4.finditer(text):
        if not _VERSION.search(text[max(0, found.start() - 16) : found.start()]):
            yield from _host(text, *found.span())
    if text.count(":") >= 2:
        for found in _IPV6.finditer(text):
            if any(char.isdigit() for char in found.group()):
                yield from _host(text, *found.span())


def find_ibans(text: str) -> Iterator[PiiSpan]:
    """IBANs with their check digits, in groups or not."""
    for found in _IBAN.finditer(text):
        size = _IBAN_LENGTHS.get(found.group()[:2].upper(), 0)
        end = _end_of(text, found.start(), found.end(), size)
        if end and iban.is_valid(text[found.start() : end], check_country=False):
            yield PiiSpan(PiiKind.IBAN, found.start(), end)


def find_usccs(text: str) -> Iterator[PiiSpan]:
    """Chinese unified social credit codes, with their check character."""
    for found in _USCC.finditer(text.upper()):
        if uscc.is_valid(found.group()) and not _DATED.fullmatch(found.group()):
            yield PiiSpan(PiiKind.CN_USCC, *found.span())


def find_plates(text: str) -> Iterator[PiiSpan]:
    """Number plates of mainland China."""
    if not text.isascii():
        for found in _PLATE.finditer(text):
            yield PiiSpan(PiiKind.PLATE, *found.span())


def find_labelled(text: str) -> Iterator[PiiSpan]:
    """Passports and accounts, which nothing but their label gives away."""
    for found in _PASSPORT.finditer(text):
        yield PiiSpan(PiiKind.PASSPORT, *found.span(1))
    for found in _ACCOUNT.finditer(text):
        yield PiiSpan(PiiKind.ACCOUNT, *found.span(1))


def _host(text: str, start: int, end: int) -> Iterator[PiiSpan]:
    try:
        address = ipaddress.ip_address(text[start:end])
    except ValueError:
        return
    if not (address.is_loopback or address.is_unspecified):
        yield PiiSpan(PiiKind.IP_ADDRESS, start, end)


def _end_of(text: str, start: int, limit: int, size: int) -> int:
    """Where the `size`-th letter or digit ends; 0 where the word goes on or is shorter."""
    seen = 0
    for place in range(start, limit):
        seen += text[place].isalnum()
        if size and seen == size:
            after = text[place + 1 : place + 2]
            return 0 if after.isascii() and after.isalnum() else place + 1
    return 0
