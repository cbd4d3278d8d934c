"""Measures a fitted judge on rows that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from evaluation.calibration import Bin, Floats, brier, calibrated_p_value, ece, reliability
from evaluation.cascade.curve import Point, curve
from evaluation.cascade.data import CascadeRow
from evaluation.cascade.fit import Verdicts
from evaluation.rows import BadData


@dataclass(frozen=True, slots=True)
class CascadeReport:
    """Figures on the test rows; `before` takes the share of equal samples for a probability.

    Attributes:
        auroc: Chance that a right answer scores above a wrong one.
        auroc_share: The same by the share of equal samples alone.
        calibrated_p: Below 0.05 the probabilities differ from calibrated ones.
        accuracy: Of the system at the threshold that the training rows chose.
        escalation: Share of questions sent to the large model there.
    """

    rows: int
    weak_accuracy: float
    strong_accuracy: float
    auroc: float
    auroc_share: float
    ece_before: float
    ece_after: float
    brier_before: float
    brier_after: float
    calibrated_p_before: float
    calibrated_p: float
    accuracy: float
    escalation: float
    reliability: tuple[Bin, ...]
    curve: tuple[Point, ...]


def measure(rows: Sequence[CascadeRow], verdicts: Verdicts) -> CascadeReport:
    """Compares verdicts with what was right.

    Raises:
        BadData: All small answers are right or all wrong: nothing can be told apart.
    """
    weak = np.array([row.weak_right for row in rows], dtype=np.float64)
    strong = np.array([row.strong_right for row in rows], dtype=np.float64)
    if len(set(weak)) < 2:
        raise BadData("the test rows hold only right or only wrong small answers")
    before, after = np.array([row.found.share for row in rows]), verdicts.probabilities
    return CascadeReport(
        rows=len(rows),
        weak_accuracy=float(weak.mean()),
        strong_accuracy=float(strong.mean()),
        auroc=_auroc(weak, after),
        auroc_share=_auroc(weak, before),
        ece_before=ece(before, weak),
        ece_after=ece(after, weak),
        brier_before=brier(before, weak),
        brier_after=brier(after, weak),
        calibrated_p_before=calibrated_p_value(before, weak),
        calibrated_p=calibrated_p_value(after, weak),
        accuracy=float(np.where(verdicts.sent, strong, weak).mean()),
        escalation=float(verdicts.sent.mean()),
        reliability=tuple(reliability(after, weak)),
        curve=tuple(curve(after, rows)),
    )


def _auroc(right: Floats, scores: Floats) -> float:
    return float(roc_auc_score(right, scores))
