"""How well probabilities agree with what happened: Brier, ECE, reliability, and a test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_BINS = 10
_DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Bin:
    """Rows of similar probability.

    Attributes:
        rows: How many.
        expected: Their mean probability.
        observed: The share that was right.
    """

    rows: int
    expected: float
    observed: float


def reliability(probabilities: Floats, right: Floats, bins: int = _BINS) -> list[Bin]:
    """Bins of equal size by rank, empty ones left out.

    Equal size, not equal width: a bin of three rows says nothing (Nguyen and O'Connor 2015).
    """
    order = np.argsort(probabilities, kind="stable")
    return [
        Bin(len(part), float(probabilities[part].mean()), float(right[part].mean()))
        for part in _parts(order, bins)
    ]


def ece(probabilities: Floats, right: Floats, bins: int = _BINS) -> float:
    """Expected calibration error: the mean of |expected − observed| over bins, by rows."""
    total = len(probabilities)
    return sum(
        one.rows / total * abs(one.expected - one.observed)
        for one in reliability(probabilities, right, bins)
    )


def brier(probabilities: Floats, right: Floats) -> float:
    """Mean squared error of the probabilities (Brier 1950)."""
    return float(np.mean((probabilities - right) ** 2))


def calibrated_p_value(probabilities: Floats, right: Floats, seed: int = 0) -> float:
    """Share of outcomes drawn from the probabilities themselves whose ECE is as large.

    Below 0.05 the probabilities can be told from calibrated ones. ECE of few rows is never
    0, even for perfect probabilities; this says what would be usual (consistency resampling,
    Bröcker and Smith 2007).
    """
    random = np.random.default_rng(seed)
    drawn = random.random((_DRAWS, len(right))) < probabilities
    order = np.argsort(probabilities, kind="stable")
    apart = np.zeros(_DRAWS)
    for part in _parts(order, _BINS):
        gaps = np.abs(probabilities[part].mean() - drawn[:, part].mean(axis=1))
        apart += len(part) / len(right) * gaps
    as_large = int((apart >= ece(probabilities, right) - 1e-12).sum())
    return (as_large + 1) / (_DRAWS + 1)


def _parts(order: NDArray[np.intp], bins: int) -> list[NDArray[np.intp]]:
    return [part for part in np.array_split(order, bins) if len(part)]
