"""A scorer learned from (question, samples, was it right): a logistic model over `FEATURES`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.common.confidence.agreement import Agreement
from services.common.confidence.calibrator import logistic
from services.common.confidence.features import FEATURES, features


@dataclass(frozen=True, slots=True)
class LearnedScorer:
    """Weights on standardized features.

    Attributes:
        means: Of each feature in training.
        scales: Standard deviation of each, never 0.
        weights: One for each feature.
        offset: Added to the weighted sum.
    """

    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    offset: float

    def __post_init__(self) -> None:
        wanted = len(FEATURES)
        for name in ("means", "scales", "weights"):
            if len(getattr(self, name)) != wanted:
                raise ValueError(f"a scorer needs {wanted} {name}, one for each feature")
        if min(self.scales) <= 0:
            raise ValueError("scales must be above 0")

    def score(self, question: str, found: Agreement) -> float:
        """Probability that the most frequent answer is right, before calibration."""
        return logistic(self.log_odds(features(question, found)))

    def log_odds(self, row: Sequence[float]) -> float:
        """The weighted sum for one row of features."""
        return self.offset + sum(
            weight * (value - mean) / scale
            for weight, value, mean, scale in zip(
                self.weights, row, self.means, self.scales, strict=True
            )
        )
