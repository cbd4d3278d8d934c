"""The threshold to take: the least escalation that meets the target, with stated confidence.

Learn-then-Test (Angelopoulos, Bates, Candès, Jordan and Lei 2021, arXiv 2110.01052, theorem 1)
with fixed-sequence testing: thresholds are tested one after the other, each at the whole level
δ, until the first that cannot be shown to meet the target; with probability at least 1 − δ
every threshold passed before does. The order must not depend on the rows that test: it starts
where rows of another part look safest, and goes down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.objective import Objective
from evaluation.sweep.bounds import binomial_p, hoeffding_bentkus_p, lower_share, upper_mean
from evaluation.sweep.points import Point

EXACT = "Learn-then-Test, fixed sequence, exact binomial p-values (Clopper-Pearson)"
MEANS = "Learn-then-Test, fixed sequence, Hoeffding-Bentkus p-values"
COST = "Hoeffding-Bentkus bound of the mean cost, Bonferroni over the thresholds"
KNEE = "Clopper-Pearson bound of the accuracy, Bonferroni over the thresholds"
KNEE_MEANS = "Hoeffding-Bentkus bound of the accuracy, Bonferroni over the thresholds"
_NEAR = 2


@dataclass(frozen=True, slots=True)
class Choice:
    """The threshold, or why there is none.

    Attributes:
        threshold: None: no threshold that keeps any answer meets the target.
        theorem: By which the target holds with the stated confidence.
        p_value: Of the target, the largest on the way; None where the objective has no target.
        bound: expected-cost: the mean cost is at most this, knee: the accuracy is at least
            this, with the stated confidence whichever threshold was taken.
        why: One sentence where there is no threshold.
    """

    threshold: float | None
    theorem: str
    p_value: float | None = None
    bound: float | None = None
    why: str = ""


def choose(
    objective: Objective,
    fit: Sequence[Point],
    test: Sequence[Point],
    target: float,
    delta: float,
    whole: bool,
) -> Choice:
    """Chooses on `test`, in the order that `fit` gave.

    Args:
        objective: See `Objective`.
        fit: Points of rows that share no session with `test`.
        test: Points of the rows that show the target.
        target: Accuracy, a share.
        delta: Probability with which the target may fail.
        whole: Every outcome is right or wrong; else means stand in for some.
    """
    if objective is Objective.ACCEPTED_ACCURACY:
        return _certified(fit, test, lambda point: _accepted_p(point, target), delta, EXACT)
    if any(point.system_right is None for point in test):
        return Choice(None, "none", why=f"{objective} needs verdicts on the cloud's answers")
    if objective is Objective.SYSTEM_ACCURACY:
        theorem = EXACT if whole else MEANS
        return _certified(fit, test, lambda one: _system_p(one, target, whole), delta, theorem)
    keeping = [point for point in test if point.accepted]
    if not keeping:
        return Choice(None, "none", why="no threshold keeps any answer")
    if objective is Objective.EXPECTED_COST:
        return _cheapest(keeping, delta / len(test))
    return _at_knee(keeping, delta / len(test), whole)


def _cheapest(points: Sequence[Point], delta: float) -> Choice:
    best = min(points, key=lambda one: one.cost or 0.0)
    most = best.worst_cost or 1.0
    bound = most * upper_mean((best.cost or 0.0) / most, best.rows, delta)
    return Choice(best.threshold, COST, bound=bound)


def _at_knee(points: Sequence[Point], delta: float, whole: bool) -> Choice:
    best = knee(points)
    if whole:
        bound = lower_share(best.system_right or 0.0, best.rows, delta)
        return Choice(best.threshold, KNEE, bound=bound)
    bound = 1.0 - upper_mean(1.0 - (best.system_accuracy or 0.0), best.rows, delta)
    return Choice(best.threshold, KNEE_MEANS, bound=bound)


def naive(objective: Objective, test: Sequence[Point], target: float) -> float | None:
    """What the point estimate alone would take; no guarantee, shown beside the choice."""

    def accuracy(point: Point) -> float:
        accepted = objective is Objective.ACCEPTED_ACCURACY
        return (point.accepted_accuracy if accepted else point.system_accuracy) or 0.0

    good = [point for point in test if point.accepted and accuracy(point) >= target]
    return min(good, key=lambda point: point.escalation).threshold if good else None


def knee(points: Sequence[Point]) -> Point:
    """Where accuracy over escalation is farthest above its chord (Satopää et al. 2011)."""
    x = np.array([point.escalation for point in points])
    y = np.array([point.system_accuracy or 0.0 for point in points])
    across, up = np.ptp(x) or 1.0, np.ptp(y) or 1.0
    return points[int(np.argmax((y - y.min()) / up - (x - x.min()) / across))]


def _certified(
    fit: Sequence[Point],
    test: Sequence[Point],
    p_value: Callable[[Point], float],
    delta: float,
    theorem: str,
) -> Choice:
    """From the threshold that `fit` finds safest, down to the first that fails on `test`."""
    start = _safest([p_value(point) for point in fit])
    passed, worst = None, 0.0
    for point in reversed(test[: start + 1]):
        p = p_value(point)
        if p > delta:
            break
        if point.accepted:
            passed, worst = point, max(worst, p)
    if passed is None:
        return Choice(None, theorem, why=_why(test[start], p_value(test[start]), delta))
    return Choice(passed.threshold, theorem, worst)


def _safest(p_values: Sequence[float]) -> int:
    """The place of the least p-value, neighbours taken in, since single ones jump by chance.

    Among equally safe ones the highest, from which there is the longest way down.
    """
    logs = np.log(np.maximum(p_values, 1e-300))
    smooth = np.convolve(np.pad(logs, _NEAR, mode="edge"), np.ones(2 * _NEAR + 1), "valid")
    return len(logs) - 1 - int(np.argmin(smooth[::-1]))


def _why(point: Point, p: float, delta: float) -> str:
    if not point.accepted:
        return "only thresholds that escalate everything meet the target, and those do not count"
    return (
        f"not even the safest threshold, {point.threshold:.2f}, shows the target: "
        f"p = {p:.3f} over {delta:.3f}, {point.accepted:.0f} answers kept"
    )


def _accepted_p(point: Point, target: float) -> float:
    return binomial_p(point.accepted_right, point.accepted, target)


def _system_p(point: Point, target: float, whole: bool) -> float:
    if whole:
        return binomial_p(point.system_right or 0.0, point.rows, target)
    return hoeffding_bentkus_p(point.system_accuracy or 0.0, point.rows, target)
