"""Writes text in one form before it is searched, and remembers where each character was.

Full-width letters, digits of other scripts, Chinese digits in long rows, odd
dashes and spaces become ASCII; invisible characters vanish. Spans found in the
normal form are mapped back, because callers cut the original text.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from dataclasses import dataclass

_INVISIBLE = dict.fromkeys(
    (0x00AD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0x2061, 0xFEFF), None
)
_INVISIBLE_RE = re.compile("[" + "".join(map(chr, _INVISIBLE)) + "]")
_CHINESE_DIGITS = str.maketrans(
    "零〇一二三四五六七八九幺壹贰叁肆伍陆柒捌玖", "0012345678911" + "23456789"
)
# Seven in a row is no quantity that anybody writes so: it is a number spelt out.
_CHINESE_ROW = re.compile(
    "[零〇一二三四五六七八九幺壹贰叁肆伍陆柒捌玖]"
    "(?:[ -]?[零〇一二三四五六七八九幺壹贰叁肆伍陆柒捌玖]){6,}"
)


def _one_to_one() -> dict[int, str]:
    table = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    table |= {code: str(code - 0x245F) for code in range(0x2460, 0x2469)}
    table |= dict.fromkeys((*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63), "-")
    table |= dict.fromkeys((0x00A0, 0x3000, 0x202F, *range(0x2000, 0x200B)), " ")
    table[0x3002] = "。"
    for code in range(0x0660, min(sys.maxunicode, 0x1FBFA)):
        value = unicodedata.decimal(chr(code), None)
        if value is not None:
            table[code] = str(value)
    return table


_TABLE = _one_to_one()


@dataclass(frozen=True, slots=True)
class Normalized:
    """Text in normal form.

    Attributes:
        text: The normal form.
        offsets: Place in the original of each character of `text`, and one past
            the end; None where both agree.
    """

    text: str
    offsets: tuple[int, ...] | None = None

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Where `text[start:end]` stands in the original."""
        if self.offsets is None:
            return start, end
        return self.offsets[start], self.offsets[end - 1] + 1


def normalize(text: str) -> Normalized:
    """The normal form of `text`; free for ASCII."""
    if text.isascii():
        return Normalized(text)
    offsets: tuple[int, ...] | None = None
    if _INVISIBLE_RE.search(text):
        kept = [i for i, char in enumerate(text) if ord(char) not in _INVISIBLE]
        text = "".join(text[i] for i in kept)
        offsets = (*kept, len(text))
    plain = text.translate(_TABLE)
    plain = _CHINESE_ROW.sub(lambda found: found.group().translate(_CHINESE_DIGITS), plain)
    return Normalized(plain, offsets)
