"""Learns the scorer that the router asks about samples of its edge model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from evaluation.calibration import brier
from evaluation.cascade.fit import learn
from evaluation.rows import BadData, Row, read_rows
from services.common.confidence.agreement import Agreement, agreement
from services.common.confidence.features import features
from services.common.confidence.learned import LearnedScorer
from services.common.confidence.likeness import normal_form


@dataclass(frozen=True, slots=True)
class Sampled:
    """A question with what a model answered, several times.

    Attributes:
        right: The most frequent answer is.
    """

    question: str
    found: Agreement
    right: bool


@dataclass(frozen=True, slots=True)
class Trained:
    """A scorer and what it is worth; figures are out of fold.

    Attributes:
        auroc: Chance that a right answer scores above a wrong one.
        auroc_share: The same by the share of equal samples alone.
    """

    scorer: LearnedScorer
    rows: int
    right: int
    auroc: float
    auroc_share: float
    brier: float


def read_sampled(path: Path) -> list[Sampled]:
    """All rows with `question`, `samples` (texts) and `gold`, or `right` in its place.

    Answers are compared in the normal form in which the router compares them.

    Raises:
        BadData: Not readable, or a column is missing or of the wrong type.
    """
    return [_sampled(row) for row in read_rows(path)]


def train_scorer(rows: list[Sampled], seed: int = 0) -> Trained:
    """Fits a scorer.

    Raises:
        BadData: Too few rows, or all answers right or wrong; says how many are needed.
    """
    table = np.array([features(row.question, row.found) for row in rows])
    right = np.array([row.right for row in rows], dtype=np.float64)
    scorer, unseen = learn(table, right, seed)
    share = np.array([row.found.share for row in rows])
    return Trained(
        scorer=scorer,
        rows=len(rows),
        right=int(right.sum()),
        auroc=float(roc_auc_score(right, unseen)),
        auroc_share=float(roc_auc_score(right, share)),
        brier=brier(unseen, right),
    )


def _sampled(row: Row) -> Sampled:
    samples = row.get("samples", list)
    if not samples or not all(isinstance(sample, str) for sample in samples):
        raise BadData(f"{row.where}: `samples` must be texts, at least one")
    found = agreement([normal_form(sample) for sample in samples])
    if "right" in row.values:
        right = row.truth("right")
    else:
        right = found.answer == normal_form(row.get("gold", str))
    return Sampled(row.get("question", str), found, right)
