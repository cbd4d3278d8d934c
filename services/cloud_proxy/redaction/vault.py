"""What each placeholder of one request stands for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from services.cloud_proxy.redaction.placeholders import LIKE, compact, key_of, name_of, write
from services.common.pii.kinds import PiiKind
from services.common.pii.normalize import normalize
from services.common.pii.span import PiiSpan

# Every character of these counts; of others only letters and digits do.
_EXACT = frozenset({PiiKind.API_KEY, PiiKind.SECRET})
_DOTTED = frozenset({PiiKind.EMAIL, PiiKind.IP_ADDRESS})
# Shorter values would be found inside ordinary text.
_MIN_REPEAT_CHARS = 6
_START = re.compile(r"(?<![A-Za-z0-9])\S|[^\sA-Za-z0-9]")


class Vault:
    """Gives each value one placeholder, and never one that the caller's text already has.

    Filled before anything is replaced; afterwards only read.
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._placeholders: dict[str, str] = {}
        self._written: set[str] = set()
        self._taken: set[str] = set()
        self._numbers: Counter[str] = Counter()
        # Spellings of the values, by length and spelling.
        self._spellings: dict[int, dict[str, tuple[str, str]]] = {}

    @property
    def values(self) -> Mapping[str, str]:
        """Values by the compact form of their placeholder, for `Restorer`."""
        return self._values

    def reserve(self, text: str) -> None:
        """Notes what looks like a placeholder in the caller's text: it must come back as it is."""
        place = 0
        while (found := LIKE.search(text, place)) is not None:
            self._taken.add(key_of(found))
            place = found.start() + 1

    def placeholder(self, kind: str, value: str) -> str:
        """The placeholder of a value; spellings of one number share it."""
        same = canonical(kind, value)
        known = self._placeholders.get(same)
        if known is not None:
            self._note_spelling(kind, value, same)
            return known
        name = name_of(kind)
        while True:
            self._numbers[name] += 1
            new = write(kind, self._numbers[name])
            if compact(new) not in self._taken:
                break
        self._values[compact(new)] = value
        self._placeholders[same] = new
        self._written.add(new)
        self._note_spelling(kind, value, same)
        return new

    def written(self, text: str) -> list[tuple[int, int]]:
        """Where placeholders of ours stand."""
        return [m.span() for m in LIKE.finditer(text) if m[0] in self._written]

    def repeats(self, text: str) -> Iterator[PiiSpan]:
        """Where values stand again, also without the words by which they were found."""
        if not self._spellings:
            return
        normal = normalize(text)
        for begin in _START.finditer(normal.text):
            for size, spellings in self._spellings.items():
                place = begin.start()
                known = spellings.get(normal.text[place : place + size])
                if known is not None and _ends(normal.text, place + size):
                    kind, _ = known
                    yield PiiSpan(kind, *normal.original(place, place + size))
                    break

    def same_as(self, text: str) -> str | None:
        """The placeholder of a spelling that `repeats` found."""
        plain = normalize(text).text
        known = self._spellings.get(len(plain), {}).get(plain)
        return None if known is None else known[1]

    def _note_spelling(self, kind: str, value: str, same: str) -> None:
        plain = normalize(value).text
        spellings = {plain} if kind in _EXACT else {plain, plain.lower(), plain.upper(), same}
        for spelling in spellings:
            if len(spelling) >= _MIN_REPEAT_CHARS:
                by_size = self._spellings.setdefault(len(spelling), {})
                by_size.setdefault(spelling, (kind, self._placeholders[same]))


def canonical(kind: str, value: str) -> str:
    """One spelling of a value: `138 1234-5678` and full-width digits give `13812345678`."""
    plain = normalize(value).text
    if kind in _EXACT:
        return plain
    if kind in _DOTTED:
        return plain.lower()
    return "".join(char for char in plain if char.isalnum()).upper()


def _ends(text: str, place: int) -> bool:
    before, after = text[place - 1 : place], text[place : place + 1]
    return not (_is_word(before) and _is_word(after))


def _is_word(char: str) -> bool:
    return char.isascii() and char.isalnum()
