"""The detector of structured personal data and secrets, English and Chinese."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator

from services.common.pii.codes import (
    find_emails,
    find_ibans,
    find_ips,
    find_labelled,
    find_plates,
    find_usccs,
)
from services.common.pii.kinds import SPECIFICITY
from services.common.pii.normalize import normalize
from services.common.pii.numbers import find_cards, find_resident_ids, find_ssns
from services.common.pii.phones import find_phones
from services.common.pii.runs import digit_runs, mask_noise, windows
from services.common.pii.span import PiiSpan
from services.common.pii.tokens import find_secrets

_DIGIT = re.compile(r"\d", re.ASCII)
# Nothing numeric that is searched for has fewer digits than this.
_MIN_DIGITS = 4
# A run of digits shorter than this is no number of a person.
_MIN_RUN_DIGITS = 7


class StructuredDetector:
    """Finds kinds of `PiiKind` by form, check digit and label.

    Deterministic and safe from any thread: it holds no state. Cost grows with the
    digits in the text; text without any is only searched for e-mail and keys.
    """

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        """Spans in `text`, in order, none overlapping; offsets are of `text` as given."""
        normal = normalize(text)
        spans = resolve(_find_all(normal.text))
        if normal.offsets is None:
            return spans
        return tuple(PiiSpan(s.kind, *normal.original(s.start, s.end)) for s in spans)


def resolve(found: Iterable[PiiSpan]) -> tuple[PiiSpan, ...]:
    """Keeps, of spans that overlap, the longest, and of equally long ones the most specific."""
    # Kinds that are not ours (a name, an address) prove least.
    last = len(SPECIFICITY)
    ranked = sorted(found, key=lambda s: (s.start - s.end, SPECIFICITY.get(s.kind, last), s.start))
    kept: list[PiiSpan] = []
    for span in ranked:
        place = bisect(kept, span.start, key=_start)
        free_left = place == 0 or kept[place - 1].end <= span.start
        if free_left and (place == len(kept) or kept[place].start >= span.end):
            kept.insert(place, span)
    return tuple(kept)


def _start(span: PiiSpan) -> int:
    return span.start


def _find_all(text: str) -> Iterator[PiiSpan]:
    yield from find_emails(text)
    yield from find_secrets(text)
    if len(_DIGIT.findall(text)) < _MIN_DIGITS:
        return
    yield from find_ips(text)
    yield from find_ibans(text)
    yield from find_usccs(text)
    yield from find_plates(text)
    yield from find_labelled(text)
    masked = mask_noise(text)
    for run in digit_runs(masked):
        if sum(end - start for start, end in run.groups) < _MIN_RUN_DIGITS:
            continue
        parts = windows(masked, run)
        if parts:
            yield from find_cards(masked, parts)
            yield from find_resident_ids(masked, parts)
            yield from find_ssns(masked, parts)
        yield from find_phones(masked, run, parts)
