"""What each threshold would have given: the curves of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluation.calibration import Floats
from evaluation.judged.counts import Counts, Strings

STEP: Final = 0.02
THRESHOLDS: Final = tuple(round(i * STEP, 2) for i in range(51))
"""0, 0.02 … 1."""


@dataclass(frozen=True, slots=True)
class CloudVerdicts:
    """What stands for the cloud's verdict on an escalated row.

    Attributes:
        mean: For rows without a verdict of their own; None where all have one, and then the
            system's outcome of every row is right or wrong, and nothing between.
        known: Some verdict or mean is there; without, nothing can be said of the system.
    """

    mean: float | None
    known: bool = True


@dataclass(frozen=True, slots=True)
class Costs:
    """In any one unit.

    Attributes:
        cloud: Of one call to the cloud.
        errors: Of a wrong answer, by intent; `default` for the others.
    """

    cloud: float = 1.0
    errors: Mapping[str, float] | None = None

    def of(self, intents: Strings) -> Floats:
        """Of an error on each entry."""
        table = self.errors or {}
        usual = table.get("default", 10.0)
        return np.array([table.get(str(intent), usual) for intent in intents], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Point:
    """Answers of a confidence below the threshold are escalated.

    Attributes:
        accepted: Rows whose edge answer is kept; `accepted_right` of them are right.
        system_right: Rows that the system answers right; not whole where means stand in.
            None where nothing is known of the cloud.
        cost: Mean per row.
        worst_cost: The most that a row can cost.
    """

    threshold: float
    rows: float
    accepted: float
    accepted_right: float
    system_right: float | None
    cost: float | None
    worst_cost: float

    @property
    def escalation(self) -> float:
        """Share of rows sent to the cloud."""
        return 1.0 - self.accepted / self.rows if self.rows else 1.0

    @property
    def accepted_accuracy(self) -> float | None:
        """Share of kept answers that are right; None where none is kept."""
        return self.accepted_right / self.accepted if self.accepted else None

    @property
    def system_accuracy(self) -> float | None:
        """Share of all rows that are answered right."""
        return None if self.system_right is None else self.system_right / max(1.0, self.rows)


def points(
    counts: Counts, confidences: Floats, cloud: CloudVerdicts, costs: Costs
) -> tuple[Point, ...]:
    """One point for each of `THRESHOLDS`."""
    return tuple(at(level, counts, confidences, cloud, costs) for level in THRESHOLDS)


def at(
    threshold: float, counts: Counts, confidences: Floats, cloud: CloudVerdicts, costs: Costs
) -> Point:
    """What one threshold gives."""
    kept = confidences >= threshold - 1e-9
    accepted, right = counts.rows[kept].sum(), counts.right[kept].sum()
    worth = _cloud_right(counts, cloud)
    prices = costs.of(counts.intents)
    served = np.where(kept, counts.right, worth)
    spent = (prices * (counts.rows - served)).sum() + costs.cloud * counts.rows[~kept].sum()
    total = float(counts.rows.sum())
    return Point(
        threshold=threshold,
        rows=total,
        accepted=float(accepted),
        accepted_right=float(right),
        system_right=float(served.sum()) if cloud.known else None,
        cost=float(spent / total) if cloud.known and total else None,
        worst_cost=float(prices.max(initial=0.0)) + costs.cloud,
    )


def _cloud_right(counts: Counts, cloud: CloudVerdicts) -> Floats:
    if cloud.mean is None:
        return counts.cloud_right
    return counts.cloud_right + cloud.mean * (counts.rows - counts.cloud_known)
