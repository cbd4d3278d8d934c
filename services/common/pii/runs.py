"""Rows of digit groups: where numbers with spaces, hyphens and brackets begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# What may stand between two groups of one number; never a line break.
_RUN = re.compile(r"\d+(?:(?:[ \t.\-/·]|\) ?|\)-| ?\(| - | ?\(0\) ?)\d+)*")
_GROUP = re.compile(r"\d+")
_MAX_GROUPS = 19
# Things full of digits that are no personal number: UUIDs, hashes, dates with times.
_NOISE = re.compile(
    r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
    r"|\b(?=[0-9]*[a-fA-F])[0-9a-fA-F]{32,}\b"
    r"|(?<!\d)(?:19|20)\d\d[-/.](?:0?[1-9]|1[0-2])[-/.](?:0?[1-9]|[12]\d|3[01])(?!\d)"
    r"(?:[T ]\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)?"
    r"|(?<!\d)(?:0?[1-9]|[12]\d|3[01])[-/.](?:0?[1-9]|[12]\d|3[01])[-/.](?:19|20)\d\d(?!\d)"
    r"|(?<!\d)(?:19|20)\d\d ?- ?(?:19|20)\d\d(?![\d-])"
    r"|\b(?:97[89][- ])(?:\d+[- ]){3}\d\b"
)


@dataclass(frozen=True, slots=True)
class Run:
    """A maximal row of groups; `groups` are (start, end) in the text."""

    groups: tuple[tuple[int, int], ...]

    @property
    def start(self) -> int:
        """First digit."""
        return self.groups[0][0]

    @property
    def end(self) -> int:
        """One past the last digit."""
        return self.groups[-1][1]


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring groups of a run, taken as one number."""

    start: int
    end: int
    digits: str
    sizes: tuple[int, ...]


def mask_noise(text: str) -> str:
    """Replaces UUIDs, hashes, dates, times and ISBNs by as many blanks that nothing matches."""
    return _NOISE.sub(lambda found: "\x00" * len(found.group()), text)


def digit_runs(text: str) -> Iterator[Run]:
    """The maximal rows of digit groups in `text`."""
    for found in _RUN.finditer(text):
        yield Run(tuple(m.span() for m in _GROUP.finditer(text, found.start(), found.end())))


def windows(text: str, run: Run, low: int, high: int) -> Iterator[Window]:
    """Every row of neighbouring groups with `low` to `high` digits together."""
    groups = run.groups
    for first in range(len(groups)):
        digits = ""
        sizes: list[int] = []
        for start, end in groups[first : first + _MAX_GROUPS]:
            digits += text[start:end]
            sizes.append(end - start)
            if len(digits) > high:
                break
            if len(digits) >= low:
                yield Window(groups[first][0], end, digits, tuple(sizes))
