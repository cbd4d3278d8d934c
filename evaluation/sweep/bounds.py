"""Finite-sample p-values and bounds of a share. No normal approximation anywhere."""

from __future__ import annotations

import math

from scipy.stats import beta, binom


def binomial_p(right: float, rows: float, target: float) -> float:
    """p-value of "the accuracy is below `target`" for right-or-wrong outcomes.

    The exact binomial tail P(Bin(rows, target) >= right), the dual of Clopper and Pearson's
    bound (1934): at most δ with probability δ where the accuracy is at or below the target.
    """
    return 1.0 if rows <= 0 else float(binom.sf(round(right) - 1, round(rows), target))


def hoeffding_bentkus_p(mean: float, rows: float, target: float) -> float:
    """The same for outcomes anywhere between 0 and 1, by their mean.

    The smaller of Hoeffding's and Bentkus's tail (Bates et al., arXiv 2101.02703, section
    3.1), of the loss 1 − outcome against the loss 1 − target.
    """
    loss, limit = 1.0 - mean, 1.0 - target
    if rows <= 0 or loss >= limit:
        return 1.0
    hoeffding = math.exp(-rows * _divergence(loss, limit))
    bentkus = math.e * float(binom.cdf(math.ceil(rows * loss - 1e-9), round(rows), limit))
    return min(1.0, hoeffding, bentkus)


def upper_mean(mean: float, rows: float, delta: float) -> float:
    """Largest mean of outcomes in 0 to 1 that Hoeffding-Bentkus does not reject at `delta`."""
    low, high = mean, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        rejected = hoeffding_bentkus_p(1.0 - mean, rows, 1.0 - middle) <= delta
        low, high = (low, middle) if rejected else (middle, high)
    return high


def lower_share(right: float, rows: float, delta: float) -> float:
    """Clopper and Pearson's one-sided lower bound."""
    return 0.0 if right <= 0 else float(beta.ppf(delta, right, rows - right + 1))


def upper_share(right: float, rows: float, delta: float) -> float:
    """Clopper and Pearson's one-sided upper bound."""
    return 1.0 if right >= rows else float(beta.ppf(1.0 - delta, right + 1, rows - right))


def rows_needed(target: float, delta: float) -> int:
    """Fewest rows that can show `target` at all: as many without any error."""
    return math.ceil(math.log(delta) / math.log(target)) if target < 1.0 else -1


def raised_target(target: float, rows: int, delta: float) -> float:
    """Accuracy at which `rows` further rows show `target` with probability 1 − `delta`.

    Few rows show less than the truth by chance; a promise about what they show must aim
    higher. By the exact binomial tail; 1.0 where no accuracy under 1 will do.
    """
    fewest = math.ceil(target * rows - 1e-9)
    low, high = target, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        short = float(binom.cdf(fewest - 1, rows, middle)) > delta
        low, high = (middle, high) if short else (low, middle)
    return high


def _divergence(a: float, b: float) -> float:
    """Kullback-Leibler divergence of two coins, in nats."""
    first = a * math.log(a / b) if a > 0 else 0.0
    second = (1 - a) * math.log((1 - a) / (1 - b)) if a < 1 else 0.0
    return first + second
