"""Which words of the lexicon a text holds: longest match first, in one pass. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from services.common.similarity.lexicon import KINDS, POLES, QUESTION_KINDS

_WORD = re.compile(r"[a-z0-9][a-z0-9.'-]*[a-z0-9]|[a-z0-9]")
# Entries of the lexicon: the table, its row, and the pole or member within the row.
_Entry = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Marks:
    """What a text holds.

    Attributes:
        poles: (row, side) with their number; a pole present twice counts twice.
        kinds: (row, member).
        questions: Names of the kinds of question.
    """

    poles: Counter[tuple[int, int]]
    kinds: frozenset[tuple[int, int]]
    questions: frozenset[str]


@lru_cache(maxsize=8_192)
def marks_of(text: str) -> Marks:
    """Looks a normalized text up in the lexicon."""
    found = [entry for form in _forms(text) for entry in _LEXICON[form]]
    return Marks(
        Counter((row, side) for table, row, side in found if table == "pole"),
        frozenset((row, side) for table, row, side in found if table == "kind"),
        frozenset(QUESTION_KINDS[row][0] for table, row, _ in found if table == "question"),
    )


def _forms(text: str) -> Iterator[str]:
    tokens = _WORD.findall(text)
    at = 0
    while at < len(tokens):
        size = next((n for n in (3, 2, 1) if " ".join(tokens[at : at + n]) in _LEXICON), 0)
        if size:
            yield " ".join(tokens[at : at + size])
        at += size or 1
    at = 0
    while at < len(text):
        if text[at].isascii():
            at += 1
            continue
        size = next((n for n in range(_LONGEST, 0, -1) if text[at : at + n] in _LEXICON), 0)
        if size:
            yield text[at : at + size]
        at += size or 1


def _lexicon() -> dict[str, list[_Entry]]:
    entries: dict[str, list[_Entry]] = {}
    for row, poles in enumerate(POLES):
        for side, forms in enumerate(poles):
            for form in forms:
                entries.setdefault(form, []).append(("pole", row, side))
    for row, (_, members) in enumerate(KINDS):
        for member, forms in enumerate(members):
            for form in forms:
                entries.setdefault(form, []).append(("kind", row, member))
    for row, (_, forms) in enumerate(QUESTION_KINDS):
        for form in forms:
            entries.setdefault(form.replace("_", " "), []).append(("question", row, 0))
    return entries


_LEXICON: Final = _lexicon()
_LONGEST: Final = max(len(form) for form in _LEXICON if not form.isascii())
STRICT_KINDS: Final = tuple(strict for strict, _ in KINDS)
