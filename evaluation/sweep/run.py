"""One task's sweep: fit, choose and measure on rows that share no session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evaluation.calibration import Floats
from evaluation.cascade.fit import isotonic
from evaluation.intervals import wilson
from evaluation.judged.counts import Counts
from evaluation.objective import Objective
from evaluation.rows import BadData
from evaluation.sweep.bounds import raised_target, rows_needed
from evaluation.sweep.choose import Choice, choose, naive
from evaluation.sweep.dual import GREY_WARNING, Dual, dual
from evaluation.sweep.points import CloudVerdicts, Costs, Point, at, points
from services.common.confidence.calibrator import Calibrator, Identity

SHARES = (0.3, 0.4, 0.3)
"""Of the sessions: to fit the calibrator, to choose the threshold, to measure it."""
FIT, CHOOSE, TEST = range(3)
MIN_ISOTONIC_ROWS = 1_000
"""Under this an isotonic map follows noise; the score then stands for the confidence."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a threshold is to do.

    Attributes:
        delta: 1 − the stated confidence.
        cloud_accuracy: Stands in for rows without a verdict on the cloud; None: the mean of
            those that have one.
        unseen_rows: 0: the promise is about the accuracy of all traffic to come. Else about what
            so many further rows will show: half of `delta` goes to their own chance, and the
            threshold is tested against a target raised for it.
        hopeless: Share of right answers at or under which the low threshold gives up.
    """

    objective: Objective = Objective.ACCEPTED_ACCURACY
    target: float = 0.95
    delta: float = 0.05
    cloud_accuracy: float | None = None
    costs: Costs = field(default_factory=Costs)
    unseen_rows: int = 0
    hopeless: float = 0.5

    def tested(self) -> tuple[float, float]:
        """Target and delta of the test itself (union bound)."""
        if not self.unseen_rows:
            return self.target, self.delta
        half = self.delta / 2
        return raised_target(self.target, self.unseen_rows, half), half


@dataclass(frozen=True, slots=True)
class Measured:
    """One threshold on the test part.

    Attributes:
        interval: Wilson's, 95 %, of the accuracy that the objective is about; None where it
            is not a share of whole rows.
        holds: That accuracy is at least the target.
    """

    name: str
    point: Point
    accuracy: float | None
    interval: tuple[float, float] | None
    holds: bool


@dataclass(frozen=True, slots=True)
class TaskSweep:
    """All that is said of a task.

    Attributes:
        calibrator: Fitted on the first part; `Identity` where that part is small.
        curve: On the part that chose.
        measured: The chosen threshold, the naive one and the one in force, on the last part.
    """

    task: str
    rows: tuple[int, int, int]
    choice: Choice
    bands: Dual | None
    calibrator: Calibrator
    curve: tuple[Point, ...]
    measured: tuple[Measured, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InForce:
    """The threshold that serves now, and the map before it.

    Attributes:
        refused: There are maps, but for another model, prompt or set of signals: the router
            escalates everything.
    """

    accept_from: float
    calibrator: Calibrator
    refused: bool = False


def sweep_task(task: str, counts: Counts, wish: Wish, in_force: InForce | None) -> TaskSweep:
    """Fits, chooses and measures.

    Raises:
        BadData: Too few rows; says how many are needed.
    """
    _check(task, counts, wish)
    fit, chosen, test = (counts.part(number) for number in (FIT, CHOOSE, TEST))
    calibrator = _calibrator(fit)
    cloud, warnings = _cloud(counts, wish)
    curves = [
        points(part, confidences(calibrator, part.scores), cloud, wish.costs)
        for part in (fit, chosen)
    ]
    whole = cloud.mean is None
    choice = choose(wish.objective, curves[0], curves[1], *wish.tested(), whole)
    bands = None
    if choice.threshold is not None:
        bands = dual(curves[1], choice.threshold, wish.delta, wish.hopeless)
    taken = {
        "chosen": choice.threshold,
        "point estimate": naive(wish.objective, curves[1], wish.target),
    }
    measured = [
        _measure(
            name, at(level, test, confidences(calibrator, test.scores), cloud, wish.costs), wish
        )
        for name, level in taken.items()
        if level is not None
    ]
    if in_force is not None:
        now = confidences(in_force.calibrator, test.scores) - 2.0 * in_force.refused
        point = at(in_force.accept_from, test, now, cloud, wish.costs)
        measured.append(_measure("in force", point, wish))
    return TaskSweep(
        task, (fit.total, chosen.total, test.total), choice, bands, calibrator, curves[1],
        tuple(measured), (*warnings, *_grey(bands)),
    )  # fmt: skip


def confidences(calibrator: Calibrator, scores: Floats) -> Floats:
    """The calibrator on many scores."""
    return np.array([calibrator.probability(score) for score in scores], dtype=np.float64)


def _check(task: str, counts: Counts, wish: Wish) -> None:
    chosen = counts.part(CHOOSE).total
    if wish.objective in (Objective.ACCEPTED_ACCURACY, Objective.SYSTEM_ACCURACY):
        if not 0.0 < wish.target < 1.0:
            raise BadData("the target must be over 0 and under 1: no sample shows more")
        least = rows_needed(wish.target, wish.delta)
    else:
        least = 50
    needed = max(least, 50)
    if chosen < needed or min(counts.part(FIT).total, counts.part(TEST).total) < 20:
        raise BadData(
            f"task {task!r}: {counts.total} rows, {chosen} of them to choose the threshold; at "
            f"least {needed} are needed there ({round(needed / SHARES[CHOOSE])} in all) to show "
            f"{wish.target:.1%} at {1 - wish.delta:.0%} confidence, even without any error"
        )


def _calibrator(fit: Counts) -> Calibrator:
    if fit.total < MIN_ISOTONIC_ROWS:
        return Identity()
    scores, place = np.unique(fit.scores, return_inverse=True)
    rows = np.bincount(place, fit.rows).astype(np.float64)
    return isotonic(scores, np.bincount(place, fit.right) / rows, rows)


def _cloud(counts: Counts, wish: Wish) -> tuple[CloudVerdicts, tuple[str, ...]]:
    known, total = float(counts.cloud_known.sum()), float(counts.rows.sum())
    if known == total:
        return CloudVerdicts(None), ()
    mean = wish.cloud_accuracy
    if mean is None and known:
        mean = float(counts.cloud_right.sum()) / known
    if mean is None:
        return CloudVerdicts(0.0, known=False), ()
    text = (
        f"{total - known:.0f} of {total:.0f} rows have no verdict on the cloud's answer; the mean "
        f"{mean:.3f} stands in, as if the cloud were equally good on easy and hard rows"
    )
    return CloudVerdicts(mean), (text,)


def _measure(name: str, point: Point, wish: Wish) -> Measured:
    accepted = wish.objective is Objective.ACCEPTED_ACCURACY
    accuracy = point.accepted_accuracy if accepted else point.system_accuracy
    right, rows = (
        (point.accepted_right, point.accepted)
        if accepted
        else (point.system_right or 0.0, point.rows)
    )
    interval = wilson(round(right), round(rows)) if accuracy is not None else None
    holds = accuracy is not None and accuracy >= wish.target
    return Measured(name, point, accuracy, interval, holds)


def _grey(bands: Dual | None) -> Sequence[str]:
    if bands is None or bands.grey <= GREY_WARNING:
        return ()
    return (
        f"the grey zone, {bands.low:.2f} to {bands.high:.2f}, holds {bands.grey:.0%} of the rows: "
        "the score tells right from wrong too badly for two thresholds",
    )
