"""Two thresholds: below the low one an answer is hopeless, from the high one it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.sweep.bounds import upper_share
from evaluation.sweep.points import Point

GREY_WARNING = 0.4
"""A larger share between the two thresholds is said."""


@dataclass(frozen=True, slots=True)
class Dual:
    """Bands for `config/thresholds.yaml`.

    Attributes:
        grey: Share of answers between the two, which a second signal or L2 must decide.
    """

    low: float
    high: float
    grey: float


def dual(points: Sequence[Point], high: float, delta: float, hopeless: float) -> Dual:
    """The low threshold under which at most `hopeless` of the answers are right.

    It is the largest for which Clopper and Pearson's upper bound at `delta` says so; each is
    tested alone, since a low that is too high costs money and no quality.
    """
    every = points[0]
    low = 0.0
    for point in points:
        under = every.rows - point.accepted
        right = every.accepted_right - point.accepted_right
        if point.threshold <= high and under and upper_share(right, under, delta) <= hopeless:
            low = point.threshold
    kept_low = next(point for point in points if point.threshold >= low).accepted
    kept_high = next(point for point in points if point.threshold >= high).accepted
    return Dual(low, high, (kept_low - kept_high) / every.rows if every.rows else 0.0)
