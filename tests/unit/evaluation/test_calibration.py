"""Brier, ECE and the test that stands behind them."""

from __future__ import annotations

import math

import numpy as np

from evaluation.calibration import brier, calibrated_p_value, ece, reliability


def test_bins_hold_equal_numbers_of_rows() -> None:
    bins = reliability(np.linspace(0, 1, 20), np.ones(20), bins=4)
    assert [one.rows for one in bins] == [5, 5, 5, 5]


def test_ece_and_brier_of_known_rows() -> None:
    probabilities, right = np.array([0.2, 0.2, 0.8, 0.8]), np.array([0.0, 1.0, 1.0, 1.0])
    assert math.isclose(ece(probabilities, right, bins=2), 0.5 * 0.3 + 0.5 * 0.2)
    assert math.isclose(brier(probabilities, right), (0.04 + 0.64 + 0.04 + 0.04) / 4)


def test_fewer_rows_than_bins_are_no_error() -> None:
    assert ece(np.array([0.5]), np.array([1.0])) == 0.5


def test_true_probabilities_pass_and_overconfident_ones_do_not() -> None:
    random = np.random.default_rng(1)
    true = random.uniform(0.3, 0.7, 400)
    right = (random.random(400) < true).astype(np.float64)
    assert calibrated_p_value(true, right) > 0.05
    assert calibrated_p_value(np.clip(2 * true - 0.5, 0.01, 0.99), right) < 0.01
