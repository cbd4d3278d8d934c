"""Fits a scorer, its calibrator and the threshold, all on training rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from evaluation.calibration import Floats
from evaluation.cascade.curve import Point, curve, least_escalation
from evaluation.cascade.data import CascadeRow
from evaluation.rows import BadData
from services.common.confidence.calibrator import Calibrator, Identity, Isotonic
from services.common.confidence.features import features
from services.common.confidence.learned import LearnedScorer

MIN_ROWS = 50
"""Fewer rows cannot carry the fit of sixteen weights and a threshold."""
MIN_EACH = 10
"""Right and wrong answers that are needed, each."""
# Below this an isotonic map follows noise (the bound is that of scikit-learn's guide), and a
# regularized logistic model is nearer to calibrated without any second fit.
_ISOTONIC_ROWS = 1_000
_STRENGTHS = np.logspace(-2.5, 1, 8)
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Judge:
    """What was fitted.

    Attributes:
        threshold: Answers whose probability is lower are escalated.
        expected: Where training rows, judged out of fold, put it.
    """

    scorer: LearnedScorer
    calibrator: Calibrator
    threshold: float
    expected: Point

    def verdicts(self, rows: Sequence[CascadeRow]) -> Verdicts:
        """Judges rows that the fit has not seen."""
        scores = (self.scorer.score(row.question, row.found) for row in rows)
        found = np.array([self.calibrator.probability(score) for score in scores])
        return Verdicts(found, found < self.threshold)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """On rows, in their order.

    Attributes:
        probabilities: Calibrated, that the small model's answer is right.
        sent: Escalated to the large model.
    """

    probabilities: Floats
    sent: NDArray[np.bool_]


def cross_judge(
    rows: Sequence[CascadeRow], folds: int, within: float, confidence: float, seed: int = 0
) -> Verdicts:
    """Judges every row by a judge fitted on the other folds, threshold included."""
    right = np.array([row.weak_right for row in rows])
    found, sent = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.bool_)
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(found, right)
    for train, test in splits:
        judge = fit([rows[i] for i in train], within, confidence, seed)
        part = judge.verdicts([rows[i] for i in test])
        found[test], sent[test] = part.probabilities, part.sent
    return Verdicts(found, sent)


def fit(
    rows: Sequence[CascadeRow], within: float, confidence: float = 0.85, seed: int = 0
) -> Judge:
    """Learns from rows; every figure that chooses something is out of fold.

    Args:
        rows: At least `MIN_ROWS`, with `MIN_EACH` right and wrong answers.
        within: How far the accuracy may fall short of the large model's, as a share.
        confidence: With which the training rows must show that, 0.5 (point estimate) to 1.
        seed: Of the folds.

    Raises:
        BadData: Too few rows, or all answers right or wrong; says how many are needed.
    """
    table = np.array([features(row.question, row.found) for row in rows])
    right = np.array([row.weak_right for row in rows], dtype=np.float64)
    scorer, unseen = learn(table, right, seed)
    calibrator = _calibrator(unseen, right)
    judged = np.array([calibrator.probability(score) for score in unseen])
    expected = least_escalation(curve(judged, rows), within, confidence)
    return Judge(scorer, calibrator, expected.threshold, expected)


def learn(table: Floats, right: Floats, seed: int = 0) -> tuple[LearnedScorer, Floats]:
    """A scorer of rows of features, and what models of the other folds say of each row.

    Raises:
        BadData: Too few rows, or all answers right or wrong; says how many are needed.
    """
    _check(right)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    model = _model(_strength(table, right, folds))
    unseen = cross_val_predict(model, table, right, cv=folds, method="predict_proba")[:, 1]
    return _scorer(model.fit(table, right)), unseen


def _check(right: Floats) -> None:
    total, good = len(right), int(right.sum())
    if total < MIN_ROWS:
        raise BadData(f"{total} training rows; at least {MIN_ROWS} are needed")
    if min(good, total - good) < MIN_EACH:
        raise BadData(
            f"{good} of {total} small answers are right; "
            f"at least {MIN_EACH} right and {MIN_EACH} wrong ones are needed"
        )


def _strength(table: Floats, right: Floats, folds: StratifiedKFold) -> float:
    scaled = StandardScaler().fit_transform(table)
    search = LogisticRegressionCV(
        Cs=_STRENGTHS, cv=folds, scoring="neg_log_loss", l1_ratios=(0.0,),
        use_legacy_attributes=False, max_iter=2_000,
    )  # fmt: skip
    return float(search.fit(scaled, right).C_)


def _model(strength: float) -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=2_000))


def _scorer(model: Pipeline) -> LearnedScorer:
    scaler, last = model[0], model[1]
    return LearnedScorer(
        means=tuple(map(float, scaler.mean_)),
        scales=tuple(map(float, scaler.scale_)),
        weights=tuple(map(float, last.coef_[0])),
        offset=float(last.intercept_[0]),
    )


def _calibrator(scores: Floats, right: Floats) -> Calibrator:
    if len(scores) < _ISOTONIC_ROWS:
        return Identity()
    return isotonic(scores, right)


def isotonic(scores: Floats, right: Floats, rows: Floats | None = None) -> Isotonic:
    """The never-falling map of least squared error through the rows.

    With `rows`, so many of them stand at each score and `right` is their mean.
    """
    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(scores, right, sample_weight=rows)
    kept = np.r_[True, np.diff(model.X_thresholds_) > 0]
    return Isotonic(
        tuple(map(float, model.X_thresholds_[kept])), tuple(map(float, model.y_thresholds_[kept]))
    )
