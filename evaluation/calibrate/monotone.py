"""Does a higher score mean more right answers?"""

from __future__ import annotations

import numpy as np

from evaluation.calibration import Floats

_DRAWS = 2_000


def monotone_p(rows: Floats, right: Floats, seed: int = 0) -> float:
    """p-value of "accuracy never falls from bin to bin"; small where it does fall.

    The statistic is the weighted square distance of the bins' shares from the nearest
    never-falling ones (order-restricted inference; Robertson, Wright and Dykstra 1988), its
    distribution drawn with the nearest never-falling shares as the truth.

    Args:
        rows: Of each bin, lowest scores first.
        right: Right answers of each bin.
        seed: Of the draws.
    """
    shares = (right / rows)[None, :]
    near = _nearest(rows, shares)[0]
    random = np.random.default_rng(seed)
    drawn = random.binomial(rows.astype(np.int64), np.clip(near, 0, 1), (_DRAWS, len(rows))) / rows
    as_far = _distances(rows, drawn) >= _distances(rows, shares) - 1e-12
    return float((as_far.sum() + 1) / (_DRAWS + 1))


def _distances(rows: Floats, shares: Floats) -> Floats:
    return np.asarray((rows * (shares - _nearest(rows, shares)) ** 2).sum(axis=1))


def _nearest(rows: Floats, shares: Floats) -> Floats:
    """Of each line of `shares`: the largest, over starts, of the least mean, over ends."""
    bins = len(rows)
    below = np.cumsum(np.concatenate([np.zeros((len(shares), 1)), rows * shares], 1), axis=1)
    under = np.concatenate([[0.0], np.cumsum(rows)])
    near = np.empty_like(shares)
    for i in range(bins):
        ends = range(i + 1, bins + 1)
        means = [
            np.min([(below[:, b] - below[:, a]) / (under[b] - under[a]) for b in ends], axis=0)
            for a in range(i + 1)
        ]
        near[:, i] = np.max(means, axis=0)
    return near
