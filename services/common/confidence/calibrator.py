"""From a score to the share of such answers that are right."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Protocol


class Calibrator(Protocol):
    """Maps a score to a probability; never falling."""

    def probability(self, score: float) -> float:
        """0 to 1, for any finite score."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The score is taken for the probability; what stands where nothing was fitted."""

    def probability(self, score: float) -> float:
        """The score, held in 0 to 1."""
        return min(1.0, max(0.0, score))


@dataclass(frozen=True, slots=True)
class Isotonic:
    """A rising line through fitted points (Zadrozny and Elkan 2002).

    Attributes:
        scores: Strictly rising.
        values: Never falling, 0 to 1; as many.
    """

    scores: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.scores, self.scores[1:], strict=False))
        monotone = all(a <= b for a, b in zip(self.values, self.values[1:], strict=False))
        inside = all(0.0 <= value <= 1.0 for value in self.values)
        if not (self.scores and len(self.scores) == len(self.values)):
            raise ValueError("an isotonic map needs as many values as scores, at least one")
        if not (rising and monotone and inside):
            raise ValueError("an isotonic map must rise from 0 to 1 at most")

    def probability(self, score: float) -> float:
        """Linear between the points, flat outside them."""
        at = bisect_right(self.scores, score)
        if at == 0:
            return self.values[0]
        if at == len(self.scores):
            return self.values[-1]
        low, high = self.scores[at - 1], self.scores[at]
        weight = (score - low) / (high - low)
        return self.values[at - 1] * (1.0 - weight) + self.values[at] * weight


def logistic(value: float) -> float:
    """1 / (1 + exp(−value)), without overflow."""
    if value >= 0:
        return 1.0 / (1.0 + math.exp(-value))
    grown = math.exp(value)
    return grown / (1.0 + grown)
