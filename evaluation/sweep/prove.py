"""Does a swept threshold hold on rows that it has not seen? Many splits of the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.cascade.data import CascadeRow, read_cascade
from evaluation.judged.counts import Counts, count
from evaluation.judged.data import read_judged
from evaluation.rows import read_rows
from evaluation.sweep.run import SHARES, TEST, TaskSweep, Wish, sweep_task


@dataclass(frozen=True, slots=True)
class Tally:
    """Over the resamplings, of one way to choose.

    Attributes:
        found: Those in which it gave a threshold at all.
        held: Those of them in which the accuracy on unseen rows was at least the target.
        escalation: Mean share escalated where a threshold was found.
        accuracy: Mean accuracy there, and the least.
    """

    name: str
    resamplings: int
    found: int
    held: int
    escalation: float
    accuracy: float
    least_accuracy: float


def prove(path: Path, wish: Wish, resamplings: int, seed: int = 0) -> tuple[Tally, ...]:
    """Splits the rows anew each time: fit, choose, and measure on the rest.

    Rows of a cascade (`weak_samples`) are scored by the share of equal samples, which needs no
    fit; judged rows bring their score along.

    The rows that measure are few, so that what they show differs from the truth by chance.
    One way promises what they will show (`Wish.unseen_rows`), one the true accuracy.

    Raises:
        BadData: As the readers, and where rows are too few.
    """
    first = next(read_rows(path))
    if "weak_samples" in first.values:
        splits = _cascade_splits(read_cascade(path), resamplings, seed)
    else:
        judged = read_judged(path)
        splits = (
            one for i in range(resamplings) for one in count(judged.frame, SHARES, seed + i).items()
        )
    plain, further = [], []
    for task, counts in splits:
        plain.append(sweep_task(task, counts, wish, None))
        rows = wish.unseen_rows or counts.part(TEST).total
        further.append(sweep_task(task, counts, replace(wish, unseen_rows=rows), None))
    return (
        _tally("chosen", "for what unseen rows show", further),
        _tally("chosen", "for the true accuracy", plain),
        _tally("point estimate", "point estimate", plain),
    )


def _tally(way: str, name: str, sweeps: Sequence[TaskSweep]) -> Tally:
    found = [one for sweep in sweeps for one in sweep.measured if one.name == way]
    reached = [one.accuracy or 0.0 for one in found]
    return Tally(
        name,
        len(sweeps),
        len(found),
        sum(one.holds for one in found),
        float(np.mean([one.point.escalation for one in found])) if found else 1.0,
        float(np.mean(reached)) if found else 0.0,
        min(reached, default=0.0),
    )


def _cascade_splits(
    rows: Sequence[CascadeRow], resamplings: int, seed: int
) -> Iterator[tuple[str, Counts]]:
    for i in range(resamplings):
        random = np.random.default_rng(seed + i)
        order = random.permutation(len(rows))
        bounds = np.cumsum(np.array(SHARES) * len(rows)).astype(int)[:-1]
        parts = np.zeros(len(rows), dtype=np.int64)
        for number, part in enumerate(np.split(order, bounds)):
            parts[part] = number
        yield "cascade", _scored(rows, parts)


def _scored(rows: Sequence[CascadeRow], parts: NDArray[np.int64]) -> Counts:
    weak = np.array([row.weak_right for row in rows], dtype=np.float64)
    strong = np.array([row.strong_right for row in rows], dtype=np.float64)
    shares, one = np.array([row.found.share for row in rows]), np.ones(len(rows))
    return Counts(shares, np.full(len(rows), ""), parts, one, weak, one, strong)
