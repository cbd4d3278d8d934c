"""Rows to arrays: what is read of each prompt once, and the scales learned from a part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from evaluation.routing_data import Row
from services.common.complexity.grams import grams_of
from services.common.complexity.members import Reader
from services.common.complexity.shape import shape_of
from services.common.embedding.runner import TextEmbedder

Floats = NDArray[np.float32]
_QUANTILES = 101


@dataclass(frozen=True, slots=True)
class Prompts:
    """What does not depend on the training part. Rows as given.

    Attributes:
        vectors: [rows, 512], of unit length.
        shapes: [rows, shapes].
        counts: [rows, buckets], 1 + log of how often each gram occurs.
        gains: strong_correct − weak_correct.
        right: [rows, 2], whether the weak and the strong model are right.
        needed: Only the strong model is right.
    """

    vectors: Floats
    shapes: Floats
    counts: sparse.csr_matrix
    gains: Floats
    right: Floats
    needed: NDArray[np.bool_]

    def part(self, at: NDArray[np.int64]) -> Prompts:
        """Some of the rows."""
        return Prompts(
            self.vectors[at],
            self.shapes[at],
            self.counts[at],
            self.gains[at],
            self.right[at],
            self.needed[at],
        )


def prepare(rows: Sequence[Row], embedder: TextEmbedder, bits: int) -> Prompts:
    """Embeds each prompt alone, as the router does."""
    found = [embedder.embed([row.prompt])[0] for row in rows]
    grams = [grams_of(vector.pieces, bits) for vector in found]
    ends = np.cumsum([0, *(len(buckets) for buckets, _ in grams)])
    counts = sparse.csr_matrix(
        (
            np.concatenate([weights for _, weights in grams]),
            np.concatenate([buckets for buckets, _ in grams]),
            ends,
        ),
        shape=(len(rows), 1 << bits),
    )
    return Prompts(
        vectors=np.stack([vector.values for vector in found]),
        shapes=np.stack([shape_of(row.prompt) for row in rows]),
        counts=counts,
        gains=np.array([row.gain for row in rows], np.float32),
        right=np.array([(row.weak_correct, row.strong_correct) for row in rows], np.float32),
        needed=np.array([row.gain > 0 for row in rows]),
    )


def learn_reader(prompts: Prompts) -> Reader:
    """Weights of grams (smoothed idf; those seen once count nothing) and scales of shapes."""
    seen = np.asarray((prompts.counts > 0).sum(axis=0)).ravel()
    idf = np.where(seen >= 2, np.log((1 + len(prompts.gains)) / (1 + seen)) + 1, 0.0)
    steps = np.linspace(0, 1, _QUANTILES)
    knots = np.quantile(prompts.shapes, steps, axis=0)
    # Rising knots: between equal ones there is no part of the way.
    knots += np.arange(_QUANTILES)[:, None] * 1e-6 * (1 + np.abs(knots[-1] - knots[0]))
    normal = np.clip(stats.norm.ppf(steps), -3.0, 3.0)
    return Reader(idf.astype(np.float32), knots.astype(np.float32), normal.astype(np.float32))


def weighted(prompts: Prompts, reader: Reader) -> sparse.csr_matrix:
    """tf-idf of each row, of unit length; empty rows stay empty."""
    rows = prompts.counts.multiply(reader.idf).tocsr()
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = sparse.diags(1.0 / np.maximum(norms, 1e-12))
    return (scale @ rows).astype(np.float32)


def scaled(prompts: Prompts, reader: Reader) -> Floats:
    """Shapes of all rows as `Reader.scaled` gives them."""
    return np.stack([reader.scaled(row) for row in prompts.shapes])
