"""Calibration: better out of fold, refused where rows are few, its top watched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.isotonic import isotonic_regression

from evaluation.calibrate.fit import FOLDS, TaskCalibration, calibrate_task
from evaluation.calibrate.monotone import _nearest, monotone_p
from evaluation.judged.counts import count
from evaluation.judged.data import read_judged
from evaluation.rows import BadData
from tests.unit.evaluation.judged_rows import judged, write_lines


def calibrated(
    path: Path, rows: int, accuracy: Callable[[float], float] = lambda score: score**2
) -> TaskCalibration:
    """Of rows made by chance."""
    read = read_judged(write_lines(path / "a.jsonl", judged(rows, accuracy)))
    counts = count(read.frame, (1 / FOLDS,) * FOLDS, 0)["order"]
    return calibrate_task("order", read.ids["order"], counts)


def test_errors_fall_and_the_entry_is_bound(tmp_path: Path) -> None:
    found = calibrated(tmp_path, 3_000)
    assert found.ece_after < 0.04 < 0.12 < found.ece_before
    assert found.brier_after < found.brier_before
    assert found.helps
    assert found.calibrated_p_before < 0.01 < found.calibrated_p
    assert (found.entry.model_id, found.entry.prompt_id) == ("m1", "p1")
    assert found.entry.curve.probability(0.5) == pytest.approx(0.25, abs=0.08)
    assert len(found.bins_before) == 10


def test_a_sound_top(tmp_path: Path) -> None:
    assert calibrated(tmp_path, 2_000, lambda score: score).entry.top_is_sound


def test_an_over_confident_top_is_flagged(tmp_path: Path) -> None:
    found = calibrated(tmp_path, 2_000, lambda score: min(score, 0.7))
    assert found.top_over_confident
    assert not found.entry.top_is_sound


def test_accuracy_that_falls_is_flagged(tmp_path: Path) -> None:
    found = calibrated(tmp_path, 2_000, lambda score: 0.95 if score < 0.6 else 0.6)
    assert found.monotone_p < 0.05
    assert not found.entry.top_is_sound


def test_noise_alone_is_no_fall() -> None:
    random = np.random.default_rng(0)
    rows = np.full(10, 50.0)
    flat = [monotone_p(rows, random.binomial(50, 0.7, 10).astype(float)) for _ in range(40)]
    assert np.mean(np.array(flat) < 0.05) < 0.2


def test_the_nearest_rising_shares_are_those_of_isotonic_regression() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        rows, shares = random.integers(1, 50, 10).astype(float), random.random((1, 10))
        wanted = isotonic_regression(shares[0], sample_weight=rows)
        assert _nearest(rows, shares)[0] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("rows", "accuracy", "said"),
    [
        (5, 0.5, "5 rows; at least 200 are needed"),
        (400, 1.0, "400 of 400 answers are right; at least 20 right and 20 wrong ones"),
        (400, 0.98, r"which takes about [\d,]+ rows at this rate"),
    ],
)
def test_too_few_rows_are_refused(tmp_path: Path, rows: int, accuracy: float, said: str) -> None:
    with pytest.raises(BadData, match=said):
        calibrated(tmp_path, rows, lambda _: accuracy)
