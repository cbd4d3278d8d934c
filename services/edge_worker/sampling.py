"""From a row of logits to one token, and to the figures that confidence needs.

Every answer needs the log-probability of its token and the margin to the second
one, so each row costs one argmax, one exp and one sum over the vocabulary; full
log-probabilities and sorting are never computed. A row's result depends on its own
logits and its own generator, never on who shares the batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]
Ids = NDArray[np.int64]
# Candidates are looked for among logits this close to the highest (after temperature),
# wider and wider, before the whole vocabulary is sorted.
_NEAR = (2.0, 5.0, 10.0)


class BadLogits(ArithmeticError):
    """The runtime gave NaN or only infinities for a row."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are drawn.

    Attributes:
        temperature: 0 is greedy.
        top_p: Nucleus, in (0, 1].
        top_k: Number of most likely tokens to draw from; 0 is all.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0


@dataclass(frozen=True, slots=True)
class RowScore:
    """What is known of a row: its best token, that logit, the margin, log of the exp-sum."""

    best: int
    margin: float
    logsumexp: float


class Scorer:
    """Scores rows with one buffer of its own; for one thread."""

    def __init__(self, vocab_size: int) -> None:
        self._shifted: Row = np.empty(vocab_size, dtype=np.float32)

    def score(self, row: Row) -> RowScore:
        """Best token, margin to the second and logsumexp of `row`, exact.

        Raises:
            BadLogits: NaN, or nothing finite.
        """
        best = int(row.argmax())
        peak = float(row[best])
        if not math.isfinite(peak):  # argmax finds NaN first
            raise BadLogits("a row of logits is not finite")
        shifted = np.subtract(row, peak, out=self._shifted)
        shifted[best] = -np.inf
        margin = -float(shifted.max())
        shifted[best] = 0.0
        total = float(np.exp(shifted, out=shifted).sum())
        return RowScore(best, margin, peak + math.log(total))


def greedy(row: Row, score: RowScore, banned: frozenset[int]) -> int:
    """The best token that is not banned."""
    return score.best if score.best not in banned else int(without(row, banned).argmax())


def without(row: Row, banned: frozenset[int]) -> Row:
    """A copy of `row` in which `banned` tokens cannot be drawn."""
    masked = row.copy()
    masked[list(banned)] = -np.inf
    return masked


def draw(row: Row, params: SamplingParams, rng: np.random.Generator) -> int:
    """Draws one token; uses exactly one number of `rng`.

    Temperature first, then top-k, then top-p over what is left. Ties keep the
    order of the vocabulary.
    """
    scaled = (row - row.max()) / np.float32(params.temperature)
    if params.top_k == 0 and params.top_p >= 1.0:
        chances = np.cumsum(np.exp(scaled), dtype=np.float64)
        return _pick(chances, rng)
    order, total = _likely(scaled, params)
    chances = np.cumsum(np.exp(scaled[order]), dtype=np.float64)
    if params.top_k:
        chances = chances[: params.top_k]
        total = float(chances[-1])
    kept = int(np.searchsorted(chances, params.top_p * total)) + 1
    return int(order[_pick(chances[:kept], rng)])


def _likely(scaled: Row, params: SamplingParams) -> tuple[Ids, float]:
    """Tokens by falling likelihood, at least those that top-k and top-p can keep."""
    weights = np.exp(scaled)
    total = float(weights.sum(dtype=np.float64))
    for distance in _NEAR:
        near = np.flatnonzero(scaled > -distance)
        held = float(weights[near].sum(dtype=np.float64))
        # With top-k, top-p counts what the k hold, so the k are enough.
        if len(near) >= params.top_k if params.top_k else held >= params.top_p * total:
            break
    else:
        near = np.arange(len(scaled))
    return near[np.argsort(-scaled[near], kind="stable")], total


def sample_seed(seed: int, index: int) -> int:
    """Seed of one sample: the first has the request's own, the others independent ones."""
    if index == 0:
        return seed
    return int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1, np.uint64)[0])


def _pick(chances: NDArray[np.float64], rng: np.random.Generator) -> int:
    place = int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))
    return min(place, len(chances) - 1)


def alternatives(row: Row, score: RowScore, count: int) -> tuple[tuple[int, float], ...]:
    """The `count` most likely tokens with their log-probabilities."""
    rest = row.copy()
    found = []
    for _ in range(count):
        token = int(rest.argmax())
        found.append((token, float(row[token]) - score.logsumexp))
        rest[token] = -np.inf
    return tuple(found)
