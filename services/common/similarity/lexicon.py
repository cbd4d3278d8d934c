"""Words that tell questions apart: `lexicon.txt` as constants."""

from __future__ import annotations

from pathlib import Path
from typing import Final


def _sections(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1]
            found[name] = []
        elif line and not line.startswith("#"):
            found[name].append(line)
    return found


def _words(name: str) -> tuple[str, ...]:
    return tuple(word for line in _SECTIONS[name] for word in line.split())


def _row(line: str) -> tuple[tuple[str, ...], ...]:
    """Cells of a line, each a tuple of forms."""
    cells = line.split("|")
    return tuple(tuple(word.replace("_", " ") for word in cell.split()) for cell in cells)


_SECTIONS: Final = _sections(Path(__file__).parent / "lexicon.txt")

POLES: Final = tuple(_row(line) for line in _SECTIONS["poles"])
# Whether the line is strict, and its members.
KINDS: Final = tuple(
    (line.startswith("!"), _row(line.removeprefix("!"))) for line in _SECTIONS["kinds"]
)
QUESTION_KINDS: Final = tuple((row[0][0], row[1]) for row in map(_row, _SECTIONS["questions"]))
NEGATIONS: Final = frozenset(_words("negations"))
NEGATIONS_ZH: Final = _words("negations_zh")
NOT_NEGATIONS_ZH: Final = _words("not_negations_zh")
STOP: Final = frozenset(_words("stop"))
STOP_ZH: Final = frozenset(_words("stop_zh"))
DIRECTION: Final = frozenset(_words("direction"))
NOT_NUMBERS_ZH: Final = _words("not_numbers_zh")

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
_OTHERS: Final = {
    "thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "seventy": 70.0,
    "eighty": 80.0, "ninety": 90.0, "once": 1.0, "twice": 2.0, "thrice": 3.0, "half": 0.5,
    "quarter": 0.25, "dozen": 12.0, "double": 2.0, "triple": 3.0, "first": 1.0, "third": 3.0,
    "fourth": 4.0, "fifth": 5.0, "sixth": 6.0, "tenth": 10.0,
}  # fmt: skip
ENGLISH_NUMBERS: Final = {
    word: float(value) for value, word in enumerate(_SMALL.split(" "))
} | _OTHERS
SCALES: Final = {
    "hundred": 100.0, "thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9,
    "bn": 1e9,
}  # fmt: skip
