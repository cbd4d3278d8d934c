"""Hit rate, wrong-hit share and recall of the semantic cache's ways to choose. Pure numpy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Scores = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Point:
    """What one threshold gives.

    Attributes:
        hit_rate: Share of all pairs that would be served from the cache.
        wrong_hit_share: Share of these that must not be; 0 without hits.
        recall: Share of the true pairs that are found; 0 without any.
    """

    threshold: float
    hit_rate: float
    wrong_hit_share: float
    recall: float
    hits: int
    wrong_hits: int


def measure(hits: Flags, same: Flags, threshold: float) -> Point:
    """Figures of one set of hits."""
    count, wrong, true = int(hits.sum()), int((hits & ~same).sum()), int(same.sum())
    return Point(
        threshold=threshold,
        hit_rate=count / len(same) if len(same) else 0.0,
        wrong_hit_share=wrong / count if count else 0.0,
        recall=(count - wrong) / true if true else 0.0,
        hits=count,
        wrong_hits=wrong,
    )


def curve(scores: Scores, allowed: Flags, same: Flags, thresholds: Iterable[float]) -> list[Point]:
    """One point a threshold: a hit has a score of at least it and is allowed."""
    return [measure((scores >= at) & allowed, same, at) for at in thresholds]


def threshold_at(scores: Scores, allowed: Flags, same: Flags, recall: float) -> float:
    """The highest threshold that finds `recall` of the true pairs; −inf where none does."""
    true = np.sort(scores[allowed & same])[::-1]
    wanted = int(np.ceil(recall * int(same.sum())))
    return float(true[wanted - 1]) if 0 < wanted <= len(true) else float("-inf")
