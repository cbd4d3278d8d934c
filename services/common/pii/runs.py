"""Rows of digit groups: where numbers with spaces, hyphens and brackets begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# What may stand between two groups of one number; never a line break.
_RUN = re.compile(r"\d+(?:(?:[ \t.\-/·]|\) ?|\)-| ?\(| - | ?\(0\) ?)\d+)*")
_GROUP = re.compile(r"\d+")
# A number in more groups than this is written digit by digit.
_MAX_GROUPS = 6
LOW_DIGITS, HIGH_DIGITS = 9, 19
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


def whole(text: str, run: Run) -> Window:
    """All groups of a run as one number."""
    sizes = tuple(end - start for start, end in run.groups)
    digits = "".join(text[start:end] for start, end in run.groups)
    return Window(run.start, run.end, digits, sizes)


def windows(text: str, run: Run) -> tuple[Window, ...]:
    """Neighbouring groups that could be one number of 9 to 19 digits.

    People write numbers in few groups or digit by digit; anything else is a list.
    """
    if len(run.groups) == 1:
        size = run.end - run.start
        return (whole(text, run),) if LOW_DIGITS <= size <= HIGH_DIGITS else ()
    return tuple(_windows(text, run.groups))


def _windows(text: str, groups: tuple[tuple[int, int], ...]) -> Iterator[Window]:
    for first, (begin, stop) in enumerate(groups):
        # Digit by digit it must be the whole row, or else any list of digits holds numbers.
        row = _spelt_row(groups, first) if stop - begin == 1 else 0
        if LOW_DIGITS <= row <= HIGH_DIGITS:
            yield whole(text, Run(groups[first : first + row]))
        count = 0
        for size, (start, end) in enumerate(groups[first : first + _MAX_GROUPS], 1):
            count += end - start
            if count > HIGH_DIGITS:
                break
            if count >= LOW_DIGITS:
                yield whole(text, Run(groups[first : first + size]))


def _spelt_row(groups: tuple[tuple[int, int], ...], first: int) -> int:
    """How many groups of one digit begin here; 0 where the row began before or is a list."""
    if first and groups[first - 1][1] - groups[first - 1][0] == 1:
        return 0
    row = groups[first : first + HIGH_DIGITS + 1]
    return next((i for i, (start, end) in enumerate(row) if end - start > 1), len(row))
