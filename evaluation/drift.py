"""Did scores or outcomes move away from what thresholds were made on?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluation.calibration import Floats, reliability
from evaluation.judged.counts import Counts
from evaluation.rows import BadData

PSI_WATCH: Final = 0.1
PSI_DRIFT: Final = 0.25
"""The customary bounds of the population stability index (Siddiqi 2006)."""
ECE_RISE: Final = 0.05
_BINS = 10
_LEAST_ROWS = 100


@dataclass(frozen=True, slots=True)
class TaskDrift:
    """One task, now against then.

    Attributes:
        psi: Population stability index of the scores, over ten bins of equal size then.
        psi_noise: What it would be by chance alone, mean plus two standard deviations.
        ece_then, ece_now: Calibration error.
        accuracy_then, accuracy_now: Of the edge's answers.
        accuracy_p: p-value of "the accuracy is the same", two-sided.
        verdict: stable, watch or drift.
        why: What spoke.
    """

    task: str
    rows_then: int
    rows_now: int
    psi: float
    psi_noise: float
    ece_then: float
    ece_now: float
    accuracy_then: float
    accuracy_now: float
    accuracy_p: float
    verdict: str
    why: tuple[str, ...]


def drift(task: str, then: Counts, now: Counts) -> TaskDrift:
    """Compares two times.

    Raises:
        BadData: Either has too few rows; says how many are needed.
    """
    for name, counts in (("the reference", then), ("the new rows", now)):
        if counts.total < _LEAST_ROWS:
            raise BadData(
                f"task {task!r}: {counts.total} rows in {name}; at least {_LEAST_ROWS} are needed"
            )
    shares = [float(one.right.sum()) / one.total for one in (then, now)]
    psi = population_stability(then, now)
    # Under no drift PSI is about chi-squared of bins - 1, times (1/n + 1/m) (Yurdakul 2018).
    scale = 1 / then.total + 1 / now.total
    noise = scale * (_BINS - 1 + 2 * math.sqrt(2 * (_BINS - 1)))
    eces = [_ece(one) for one in (then, now)]
    p = _same_share(shares, (then.total, now.total))
    verdict, why = _verdict(psi, noise, eces, shares, p)
    return TaskDrift(
        task, then.total, now.total, psi, noise, eces[0], eces[1], shares[0], shares[1], p,
        verdict, why,
    )  # fmt: skip


def population_stability(then: Counts, now: Counts) -> float:
    """Σ (now − then) · ln(now / then) over bins of the scores then."""
    ranks = np.cumsum(then.rows) / then.rows.sum()
    edges = np.unique([then.scores[np.searchsorted(ranks, i / _BINS)] for i in range(1, _BINS)])
    old, new = (_shares(counts, edges) for counts in (then, now))
    return float(((new - old) * np.log(new / old)).sum())


def _shares(counts: Counts, edges: Floats) -> Floats:
    bins = np.bincount(
        np.searchsorted(edges, counts.scores, side="left"), counts.rows, len(edges) + 1
    )
    # Half a row more in each, so that an empty one is finite.
    return np.asarray((bins + 0.5) / (bins.sum() + 0.5 * len(bins)))


def _ece(counts: Counts) -> float:
    """Over ten bins, of at most some thousand rows: more change nothing."""
    thin = max(1.0, counts.total / 50_000)
    right = np.round(counts.right / thin).astype(int)
    wrong = np.round((counts.rows - counts.right) / thin).astype(int)
    scores = np.r_[np.repeat(counts.scores, right), np.repeat(counts.scores, wrong)]
    verdicts = np.r_[np.ones(right.sum()), np.zeros(wrong.sum())]
    total = len(scores)
    return sum(
        one.rows / total * abs(one.expected - one.observed)
        for one in reliability(scores, verdicts, _BINS)
    )


def _same_share(shares: list[float], rows: tuple[int, int]) -> float:
    pooled = (shares[0] * rows[0] + shares[1] * rows[1]) / sum(rows)
    error = math.sqrt(pooled * (1 - pooled) * (1 / rows[0] + 1 / rows[1]))
    return 1.0 if error == 0 else math.erfc(abs(shares[0] - shares[1]) / error / math.sqrt(2))


def _verdict(
    psi: float, noise: float, eces: list[float], shares: list[float], p: float
) -> tuple[str, tuple[str, ...]]:
    strong: list[str] = []
    weak: list[str] = []
    if psi > noise:
        said = f"scores moved: PSI {psi:.3f}"
        (strong if psi > PSI_DRIFT else weak if psi > PSI_WATCH else []).append(said)
    if p < 0.01 and shares[1] < shares[0]:
        strong.append(f"accuracy fell from {shares[0]:.1%} to {shares[1]:.1%} (p {p:.4f})")
    if eces[1] > eces[0] + ECE_RISE:
        strong.append(f"calibration error rose from {eces[0]:.3f} to {eces[1]:.3f}")
    verdict = "drift" if strong else "watch" if weak else "stable"
    return verdict, (*strong, *weak)
