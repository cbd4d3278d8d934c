"""Accuracy against escalation, and the point to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from evaluation.calibration import Floats
from evaluation.cascade.data import CascadeRow


@dataclass(frozen=True, slots=True)
class Point:
    """Answers below the threshold go to the large model.

    Attributes:
        escalation: Their share.
        accuracy: Of the whole system.
        strong_accuracy: Of the large model alone.
        shortfall_error: Standard error of `shortfall`, the rows taken in pairs.
    """

    threshold: float
    escalation: float
    accuracy: float
    strong_accuracy: float
    shortfall_error: float

    @property
    def shortfall(self) -> float:
        """How far the system is behind the large model; below 0 where it is ahead."""
        return self.strong_accuracy - self.accuracy


def curve(probabilities: Floats, rows: Sequence[CascadeRow]) -> list[Point]:
    """One point for each threshold that differs, from nothing to everything escalated.

    A threshold lies halfway between neighbouring probabilities, so that rows never seen
    before do not fall on it.
    """
    weak = np.array([row.weak_right for row in rows], dtype=np.float64)
    strong = np.array([row.strong_right for row in rows], dtype=np.float64)
    levels = np.unique(probabilities)
    thresholds = [0.0, *((levels[1:] + levels[:-1]) / 2), float(np.nextafter(1.0, 2.0))]
    return [at(threshold, probabilities, weak, strong) for threshold in thresholds]


def at(threshold: float, probabilities: Floats, weak: Floats, strong: Floats) -> Point:
    """What one threshold gives on some rows."""
    sent = probabilities < threshold
    served = np.where(sent, strong, weak)
    return Point(
        threshold=float(threshold),
        escalation=float(sent.mean()),
        accuracy=float(served.mean()),
        strong_accuracy=float(strong.mean()),
        shortfall_error=float((strong - served).std() / np.sqrt(len(served))),
    )


def least_escalation(points: Sequence[Point], within: float, confidence: float) -> Point:
    """The point with the fewest escalations that is at most `within` behind the large model.

    The best of many points on few rows looks better than it is; so a point must hold with
    `confidence`, one-sided, by the normal approximation of its paired error. Escalating
    everything always qualifies, so there is always one.
    """
    z = NormalDist().inv_cdf(confidence)
    good = [point for point in points if point.shortfall + z * point.shortfall_error <= within]
    return min(good, key=lambda point: point.escalation)
