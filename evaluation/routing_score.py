"""APGR and CPT of a router that ranks prompts (Ong et al., RouteLLM, arXiv 2406.18665).

PGR = (r(router) − r(weak)) / (r(strong) − r(weak)), r the share of right answers. A router
sends the share c of prompts with the highest scores to the strong model. APGR is the integral
of PGR over c from 0 to 1; CPT(x) the least c at which PGR reaches x. Prompts of equal score
are taken in random order, so PGR is a straight line through their group: a constant score
gives 0.5, and the order of rows in the file never matters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class NoGain(Exception):
    """Both models are right equally often, or the strong one less: PGR has no meaning."""


@dataclass(frozen=True, slots=True)
class Curve:
    """PGR over the share of calls sent to the strong model: straight between its points."""

    shares: Floats
    pgr: Floats

    @property
    def apgr(self) -> float:
        """Area under the curve; 0.5 for a random router."""
        return float(np.trapezoid(self.pgr, self.shares))

    def cpt(self, level: float) -> float:
        """Least share of strong calls at which PGR reaches `level`, 0–1 for 0 < level ≤ 1."""
        at = int(np.flatnonzero(self.pgr >= level - 1e-12)[0])
        if at == 0:
            return 0.0
        low, high = self.pgr[at - 1], self.pgr[at]
        part = (level - low) / (high - low)
        return float(self.shares[at - 1] + part * (self.shares[at] - self.shares[at - 1]))


def curve_of(scores: ArrayLike, gains: ArrayLike) -> Curve:
    """The curve of `scores` (higher: rather the strong model) on rows of these gains.

    Args:
        gains: strong_correct − weak_correct of each row.

    Raises:
        NoGain: The gains do not sum to more than zero.
    """
    scores, gains = np.asarray(scores, np.float64), np.asarray(gains, np.float64)
    if gains.sum() <= 0:
        raise NoGain("the strong model is not right more often than the weak one on these rows")
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=np.nan) != 0) + 1
    won = np.cumsum(gains[order])[ends - 1]
    return Curve(
        np.concatenate([[0.0], ends / len(scores)]), np.concatenate([[0.0], won / gains.sum()])
    )
