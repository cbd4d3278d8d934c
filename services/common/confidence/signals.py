"""Signals of one answer, each 0 to 1, and their weighted mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Signal(StrEnum):
    """What a confidence can be made of."""

    LOGPROB = "logprob"
    AGREEMENT = "agreement"
    SELF_REPORT = "self_report"
    SCORER = "scorer"


@dataclass(frozen=True, slots=True)
class RawScore:
    """A score before calibration.

    Attributes:
        value: 0 to 1.
        signals: What it was made of; a calibrator holds for exactly one such set.
    """

    value: float
    signals: frozenset[Signal]

    @property
    def only_self_report(self) -> bool:
        """Such a score may never accept: models are sure of their errors too."""
        return self.signals <= {Signal.SELF_REPORT}


def logprob_signal(mean_logprob: float) -> float:
    """Likelihood of the answer, normalized by length: exp of the mean log-probability.

    Malinin and Gales 2021 (arXiv 2002.07650). One unlikely token among many hardly shows in
    it, so the least likely one is looked at apart.
    """
    return math.exp(min(0.0, mean_logprob))


def combine(signals: Mapping[Signal, float], weights: Mapping[Signal, float]) -> RawScore | None:
    """Weighted mean of the signals there are; the absent ones' weight goes to the others.

    Returns:
        None where no signal with a weight is there.
    """
    present = {name: value for name, value in signals.items() if weights.get(name, 0.0) > 0}
    total = sum(weights[name] for name in present)
    if total <= 0:
        return None
    mean = sum(weights[name] * value for name, value in present.items()) / total
    return RawScore(min(1.0, max(0.0, mean)), frozenset(present))
