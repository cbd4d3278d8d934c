"""One task's calibration: bins, errors before and after, the map, and whether its top is sound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.calibrate.monotone import monotone_p
from evaluation.calibration import Bin, Floats, brier, calibrated_p_value, ece, reliability
from evaluation.cascade.fit import isotonic
from evaluation.intervals import wilson
from evaluation.judged.counts import Counts
from evaluation.judged.schema import Ids
from evaluation.rows import BadData
from services.common.confidence.calibrator import Isotonic
from services.common.confidence.signals import Signal
from services.common.confidence.thresholds import Calibration

FOLDS = 5
BINS = 10
MIN_ROWS = 200
"""Twenty in each of ten bins."""
MIN_EACH = 20
"""Right and wrong answers, each."""
# What is drawn from at most so many rows of a task tells all that is to be told.
_MOST_ROWS = 100_000
_NOT_MONOTONE = 0.05
# A top bin this far below its score is over-confident, where its interval says so too.
_TOP_GAP = 0.05
_POINTS = 200


@dataclass(frozen=True, slots=True)
class TaskCalibration:
    """What was found; `before` takes the score for the confidence, `after` is out of fold.

    Attributes:
        calibrated_p: Below 0.05 the confidences differ from calibrated ones.
        monotone_p: Below 0.05 accuracy falls somewhere while the score rises.
        top_over_confident: The top bin is right less often than its scores say.
        helps: The map lowers the Brier score out of fold.
        entry: For `calibrations:` of thresholds.yaml.
    """

    task: str
    rows: int
    right: int
    ids: Ids
    bins_before: tuple[Bin, ...]
    bins_after: tuple[Bin, ...]
    ece_before: float
    ece_after: float
    brier_before: float
    brier_after: float
    calibrated_p_before: float
    calibrated_p: float
    monotone_p: float
    top_over_confident: bool
    helps: bool
    entry: Calibration


def calibrate_task(task: str, ids: Ids, counts: Counts, seed: int = 0) -> TaskCalibration:
    """Fits and judges one task's map.

    Args:
        task: Its name.
        ids: What the map will be bound to.
        counts: With `FOLDS` parts, split by session.
        seed: Of the tests by simulation.

    Raises:
        BadData: Too few rows, or too few right or wrong ones; says how many are needed.
    """
    _check(task, counts)
    scores, right, folds = _rows(counts, seed)
    unseen = np.empty_like(scores)
    for fold in range(FOLDS):
        mine = folds == fold
        if mine.any():
            unseen[mine] = _apply(isotonic(scores[~mine], right[~mine]), scores[mine])
    before = reliability(scores, right, BINS)
    falls = monotone_p(
        np.array([one.rows for one in before], dtype=np.float64),
        np.array([one.rows * one.observed for one in before]),
        seed,
    )
    over = _over_confident(before[-1])
    brier_before, brier_after = brier(scores, right), brier(unseen, right)
    return TaskCalibration(
        task=task,
        rows=counts.total,
        right=int(counts.right.sum()),
        ids=ids,
        bins_before=tuple(before),
        bins_after=tuple(reliability(unseen, right, BINS)),
        ece_before=ece(scores, right),
        ece_after=ece(unseen, right),
        brier_before=brier_before,
        brier_after=brier_after,
        calibrated_p_before=calibrated_p_value(*_few(scores, right), seed),
        calibrated_p=calibrated_p_value(*_few(unseen, right), seed),
        monotone_p=falls,
        top_over_confident=over,
        helps=brier_after < brier_before,
        entry=_entry(task, ids, isotonic(scores, right), sound=not over and falls >= _NOT_MONOTONE),
    )


def _check(task: str, counts: Counts) -> None:
    rows, right = counts.total, int(counts.right.sum())
    if rows < MIN_ROWS:
        raise BadData(
            f"task {task!r}: {rows} rows; at least {MIN_ROWS} are needed, 20 in each of 10 bins"
        )
    rarer = min(right, rows - right)
    if rarer < MIN_EACH:
        about = "many more" if rarer == 0 else f"about {math.ceil(MIN_EACH * rows / rarer):,}"
        raise BadData(
            f"task {task!r}: {right} of {rows} answers are right; at least {MIN_EACH} right and "
            f"{MIN_EACH} wrong ones are needed, which takes {about} rows at this rate"
        )
    if len(np.unique(counts.parts)) < FOLDS:
        raise BadData(f"task {task!r}: its rows are of too few sessions to be split in {FOLDS}")


def _rows(counts: Counts, seed: int) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Single rows again, at most `_MOST_ROWS`, in random order."""
    right, wrong = counts.right.astype(int), (counts.rows - counts.right).astype(int)
    scores = np.r_[np.repeat(counts.scores, right), np.repeat(counts.scores, wrong)]
    folds = np.r_[np.repeat(counts.parts, right), np.repeat(counts.parts, wrong)]
    verdicts = np.r_[np.ones(right.sum()), np.zeros(wrong.sum())]
    order = np.random.default_rng(seed).permutation(len(scores))[:_MOST_ROWS]
    return scores[order], verdicts[order], folds[order]


def _few(scores: Floats, right: Floats, most: int = 5_000) -> tuple[Floats, Floats]:
    """The first rows; they are in random order. The test draws 2,000 times as many."""
    return scores[:most], right[:most]


def _apply(curve: Isotonic, scores: Floats) -> Floats:
    return np.interp(scores, curve.scores, curve.values)


def _over_confident(top: Bin) -> bool:
    interval = wilson(round(top.rows * top.observed), top.rows)
    upper = interval[1] if interval else 1.0
    return upper < top.expected and top.expected - top.observed > _TOP_GAP


def _entry(task: str, ids: Ids, curve: Isotonic, *, sound: bool) -> Calibration:
    thin = _thinned(curve)
    return Calibration(
        task=task,
        model_id=ids.model_id,
        prompt_id=ids.prompt_id,
        signals=frozenset(Signal(name) for name in ids.signals.split("+")),
        scores=tuple(round(score, 6) for score in thin.scores),
        values=tuple(round(value, 6) for value in thin.values),
        top_is_sound=sound,
    )


def _thinned(curve: Isotonic) -> Isotonic:
    """At most `_POINTS` points, so that people can read the file."""
    if len(curve.scores) <= _POINTS:
        return curve
    kept = np.unique(np.linspace(0, len(curve.scores) - 1, _POINTS).astype(int))
    return Isotonic(tuple(curve.scores[i] for i in kept), tuple(curve.values[i] for i in kept))
