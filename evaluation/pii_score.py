"""Compares what a detector finds with what is there."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluation.intervals import wilson
from evaluation.pii_data import ENTITY_OF, KIND_OF, Case, Label
from services.common.pii.span import PiiDetector, PiiSpan

MIN_IOU = 0.5
_BLOCK_CHARS = 200
_LAPS = 3
Interval = tuple[float, float] | None


@dataclass(slots=True)
class Tally:
    """Counts of one type: found rightly, found wrongly, missed."""

    hits: int = 0
    false: int = 0
    missed: int = 0

    def add(self, other: Tally) -> None:
        """Adds the counts of another tally."""
        self.hits += other.hits
        self.false += other.false
        self.missed += other.missed


@dataclass(frozen=True, slots=True)
class Score:
    """Quality with its 95 % intervals; None where there is nothing to divide by.

    Attributes:
        f2: Recall weighs twice as much as precision: 5PR / (4P + R).
    """

    recall: float | None
    precision: float | None
    f2: float | None
    recall_interval: Interval
    precision_interval: Interval
    hits: int
    false: int
    missed: int


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds for 200 characters, over blocks of consecutive texts."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Report:
    """A whole evaluation.

    Attributes:
        structured: Pooled over our kinds.
        by_type: Of each of our kinds that is there or was found.
        not_detected: How often each type of the data stands there that we do not look for.
        clean_texts: Texts without anything of our kinds.
        clean_texts_with_finds: Of these, how many gave an alarm.
    """

    texts: int
    structured: Score
    by_type: dict[str, Score]
    not_detected: dict[str, int]
    clean_texts: int
    clean_texts_with_finds: int
    timing: Timing


def evaluate_entities(cases: Sequence[Case], detector: PiiDetector) -> dict[str, Score]:
    """Names, organizations and addresses by kind, apart from everything structured."""
    tallies: dict[str, Tally] = {}
    for case in cases:
        gold = [(ENTITY_OF[label.type], label) for label in case.labels if label.type in ENTITY_OF]
        _match(gold, detector.find(case.text), tallies)
    return {kind: score(tallies[kind]) for kind in sorted(tallies)}


def evaluate(cases: Sequence[Case], detector: PiiDetector) -> Report:
    """Runs the detector over all cases; spans match at equal kind and IoU >= 0.5."""
    tallies: dict[str, Tally] = {}
    other: dict[str, int] = {}
    clean = alarmed = 0
    for case in cases:
        gold = [(KIND_OF[label.type], label) for label in case.labels if label.type in KIND_OF]
        for label in case.labels:
            if label.type not in KIND_OF:
                other[label.type] = other.get(label.type, 0) + 1
        found = detector.find(case.text)
        clean += not gold
        alarmed += not gold and bool(found)
        _match(gold, found, tallies)
    pooled = Tally()
    for tally in tallies.values():
        pooled.add(tally)
    return Report(
        texts=len(cases),
        structured=score(pooled),
        by_type={kind: score(tallies[kind]) for kind in sorted(tallies)},
        not_detected=dict(sorted(other.items())),
        clean_texts=clean,
        clean_texts_with_finds=alarmed,
        timing=measure([case.text for case in cases], detector),
    )


def score(tally: Tally) -> Score:
    """The figures of one tally."""
    there, found = tally.hits + tally.missed, tally.hits + tally.false
    recall = tally.hits / there if there else None
    precision = tally.hits / found if found else None
    weighted = 5 * tally.hits + 4 * tally.missed + tally.false
    return Score(
        recall=recall,
        precision=precision,
        f2=5 * tally.hits / weighted if weighted else None,
        recall_interval=wilson(tally.hits, there),
        precision_interval=wilson(tally.hits, found),
        hits=tally.hits,
        false=tally.false,
        missed=tally.missed,
    )


def measure(texts: Iterable[str], detector: PiiDetector) -> Timing:
    """Times blocks of about 200 characters, three laps over all; the first find is not counted."""
    blocks = _blocks(texts)
    detector.find(blocks[0][0])
    taken: list[float] = []
    for _ in range(_LAPS):
        for block in blocks:
            began = time.perf_counter()
            for text in block:
                detector.find(text)
            spent_ms = (time.perf_counter() - began) * 1000.0
            taken.append(spent_ms * _BLOCK_CHARS / max(1, sum(map(len, block))))
    taken.sort()
    return Timing(taken[len(taken) // 2], taken[min(len(taken) - 1, len(taken) * 95 // 100)])


def _match(
    gold: Sequence[tuple[StrEnum, Label]], found: Sequence[PiiSpan], tallies: dict[str, Tally]
) -> None:
    used: set[int] = set()
    for kind, label in gold:
        tally = tallies.setdefault(kind.value, Tally())
        fits = [
            (overlap, place)
            for place, span in enumerate(found)
            if place not in used
            and span.kind == kind
            and (overlap := iou(label.start, label.end, span.start, span.end)) >= MIN_IOU
        ]
        if fits:
            used.add(max(fits)[1])
            tally.hits += 1
        else:
            tally.missed += 1
    for place, span in enumerate(found):
        if place not in used:
            tallies.setdefault(str(span.kind), Tally()).false += 1


def iou(start: int, end: int, other_start: int, other_end: int) -> float:
    """Shared part of two spans over what they cover together."""
    shared = max(0, min(end, other_end) - max(start, other_start))
    return shared / ((end - start) + (other_end - other_start) - shared)


def _blocks(texts: Iterable[str]) -> list[list[str]]:
    blocks: list[list[str]] = [[]]
    size = 0
    for text in texts:
        blocks[-1].append(text)
        size += len(text)
        if size >= _BLOCK_CHARS:
            blocks.append([])
            size = 0
    return [block for block in blocks if block] or [[""]]
