r"""The form of placeholders, and what a model may make of it.

Written `[PHONE_1]`. Read with other case, brackets and spacing, with the escapes of
Markdown and JSON (`\[Phone\_1\]`, `\u005bPHONE_1\u005d`, also doubled), and without
brackets where exactly the name stands (`**PHONE_1**`).
"""

from __future__ import annotations

import re
import unicodedata

_OPEN = "[{(<［【〔〖⟦「『《〈（｛＜"
_CLOSE = "]})>］】〕〗⟧」』》〉）｝＞"
_SEPARATORS = "_-*`:#. \t\n\r\u00a0\u200b\u202f\u3000＿－"
_ESCAPED_LETTERS = "00(?:3[0-9]|[46][1-9a-f]|[57][0-9a])"
_ESCAPED_SEPARATORS = "_- \t\n\u00a0\u200b\u202f\u3000"
_WORD = "A-Za-z0-9Ａ-Ｚａ-ｚ０-９"
# More of them and it is no escape of ours; a bound keeps the search linear.
_SLASHES = r"\\{1,8}"
_MAX_UNITS = 48


def _escapes(chars: str) -> str:
    return rf"{_SLASHES}u(?:" + "|".join(f"{ord(char):04x}" for char in chars) + ")"


def _hex_any_case(pattern: str) -> str:
    return f"(?i:{pattern})"


_BEGIN = rf"(?:[{re.escape(_OPEN)}]|{_hex_any_case(_escapes(_OPEN))})"
_SLASHED_BEGIN = rf"{_SLASHES}[{re.escape(_OPEN)}]"
_END = rf"(?:[{re.escape(_CLOSE)}]|{_hex_any_case(_escapes(_CLOSE))})"
_SLASHED_END = rf"{_SLASHES}[{re.escape(_CLOSE)}]"
_UNIT = (
    rf"(?:[{_WORD}{re.escape(_SEPARATORS)}]|{_SLASHES}[_\-*]"
    rf"|{_hex_any_case(_escapes(_ESCAPED_SEPARATORS))}"
    rf"|{_SLASHES}(?i:u{_ESCAPED_LETTERS}))"
)
_BARE = r"(?<![A-Za-z0-9_])[A-Z]{2,16}(?:_[A-Z]{2,16}){0,3}_[0-9]{1,6}(?![A-Za-z0-9_])"

LIKE = re.compile(
    rf"{_SLASHED_BEGIN}(?P<slashed>{_UNIT}{{1,{_MAX_UNITS}}}){_SLASHED_END}"
    rf"|{_BEGIN}(?P<plain>{_UNIT}{{1,{_MAX_UNITS}}})(?:{_END}|{_SLASHED_END})"
    rf"|(?P<bare>{_BARE})"
)
"""Whatever may be a placeholder; `key_of` says which."""

UNFINISHED = re.compile(
    rf"(?:{_SLASHED_BEGIN}|{_BEGIN})(?P<inside>{_UNIT}{{0,{_MAX_UNITS}}})"
    rf"(?:{_SLASHES}(?:u[0-9a-fA-F]{{0,3}})?)?\Z"
    rf"|{_SLASHES}(?:u[0-9a-fA-F]{{0,3}})?\Z"
    r"|(?<![A-Za-z0-9_])(?P<bare>[A-Z][A-Z0-9_]{0,64})\Z"
)
"""The end of a text that could go on to be a match of `LIKE`."""

# The longest opening, so many of the longest units, and the longest piece of one more.
MAX_UNFINISHED_CHARS = 13 * (_MAX_UNITS + 2)

_UNESCAPE = re.compile(_SLASHES + r"(?:u([0-9a-fA-F]{4}))?")
_NOT_LETTERS = re.compile(r"[^A-Z]+")
_FIRST_SLASHES = re.compile(r"(\\+)u", re.IGNORECASE)


def write(kind: str, number: int) -> str:
    """The placeholder of the `number`-th value of a kind."""
    return f"[{name_of(kind)}_{number}]"


def name_of(kind: str) -> str:
    """A kind as placeholders show it: letters and single underscores."""
    return _NOT_LETTERS.sub("_", kind.upper()).strip("_") or "VALUE"


def key_of(found: re.Match[str]) -> str:
    """What a match of `LIKE` says, in one spelling: `PHONE1`."""
    return compact(found["slashed"] or found["plain"] or found["bare"])


def compact(inside: str) -> str:
    """Letters and digits of a placeholder's inside, in upper case."""
    plain = _UNESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else "", inside)
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", plain)
    return "".join(char for char in plain if char.isalnum()).upper()


def escape_depth(matched: str) -> int:
    r"""How many times the place around was written as JSON text: `\u` once, `\\u` twice."""
    found = _FIRST_SLASHES.search(matched)
    return len(found[1]).bit_length() if found else 0
