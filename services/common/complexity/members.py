"""The two models whose sum is the score: a kernel machine and a forest, on numpy alone.

Kernel: k(x, y) = U + S + U · S + shape(x) · shape(y) ÷ n + grams(x) · grams(y), U a Gaussian of
sentence vectors, S one of the n shape numbers; learned by ridge regression of the gain on
landmarks (C. Williams, M. Seeger, "Using the Nyström method to speed up kernel machines", 2001),
the linear parts as plain weights.
Forest: extremely randomized trees (P. Geurts et al., 2006) on the vector's main directions and
the shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.common.complexity.grams import grams_of
from services.common.complexity.shape import shape_of
from services.common.embedding.runner import Vector

Arrays = Mapping[str, NDArray[Any]]
Floats = NDArray[np.float32]
VECTOR_SHARPNESS = 4.0
_BLOCK_NUMBERS = 8_192  # OpenBLAS threads a matrix-vector product from 9,216 numbers on


@dataclass(frozen=True, slots=True)
class Seen:
    """What the members look at, of one prompt.

    Attributes:
        vector: Of unit length.
        shape: Scaled by `Scaler`.
        raw_shape: As `shape_of` gives it.
        buckets, weights: Grams with tf-idf weights of unit length.
    """

    vector: Floats
    shape: Floats
    raw_shape: Floats
    buckets: NDArray[np.int64]
    weights: Floats


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads a prompt into what the members look at.

    Attributes:
        idf: Weight of each bucket, 0 for those seen once; 2^bits of them.
        knots: [quantiles, shapes]: values of each shape number at equal steps of its distribution.
        normal: [quantiles] what each step maps to: a normal distribution, cut at ±3.
    """

    idf: Floats
    knots: Floats
    normal: Floats

    @classmethod
    def of(cls, arrays: Arrays) -> Reader:
        """From a file's arrays."""
        return cls(arrays["idf"], arrays["knots"], arrays["normal"])

    def read(self, text: str, vector: Vector) -> Seen:
        """Everything of one prompt."""
        raw = shape_of(text)
        buckets, weights = self.grams(vector.pieces)
        return Seen(vector.values, self.scaled(raw), raw, buckets, weights)

    def grams(self, pieces: tuple[int, ...]) -> tuple[NDArray[np.int64], Floats]:
        """Grams known from training, their weights of unit length."""
        buckets, counts = grams_of(pieces, (len(self.idf) - 1).bit_length())
        weights = counts * self.idf[buckets]
        norm = float(np.sqrt(weights @ weights))
        return buckets, weights / norm if norm > 0 else weights

    def scaled(self, raw: Floats) -> Floats:
        """Each number by its rank among the training rows, as a normal variable."""
        after = np.clip((self.knots <= raw).sum(axis=0), 1, len(self.knots) - 1)
        columns = np.arange(len(raw))
        low, high = self.knots[after - 1, columns], self.knots[after, columns]
        part = np.clip((raw - low) / (high - low), 0.0, 1.0)
        start, end = self.normal[after - 1], self.normal[after]
        scaled: Floats = (start + part * (end - start)).astype(np.float32)
        return scaled


@dataclass(frozen=True, slots=True)
class Rows:
    """A matrix in blocks so small that BLAS takes one thread for each: waking others for one
    prompt costs more than it brings, and on busy cores far more."""

    blocks: Floats
    count: int

    @classmethod
    def of(cls, matrix: Floats) -> Rows:
        """From [rows, columns]; the last block is filled up with zeros."""
        count, columns = matrix.shape
        size = max(1, _BLOCK_NUMBERS // columns)
        padded = np.zeros((-(-count // size) * size, columns), np.float32)
        padded[:count] = matrix
        return cls(padded.reshape(-1, size, columns), count)

    def times(self, vector: Floats) -> Floats:
        """Matrix · vector."""
        product: Floats = np.matmul(self.blocks, vector).reshape(-1)[: self.count]
        return product


@dataclass(frozen=True, slots=True)
class Kernel:
    """Landmarks with their weights, and a weight for each gram and shape number."""

    vectors: Rows
    shapes: Rows
    shape_squares: Floats
    alphas: Floats
    gram_weights: Floats
    shape_weights: Floats

    @classmethod
    def of(cls, arrays: Arrays) -> Kernel:
        """From a file's arrays."""
        shapes = arrays["landmark_shapes"]
        return cls(
            Rows.of(arrays["landmark_vectors"]),
            Rows.of(shapes),
            (shapes * shapes).sum(axis=1),
            arrays["alphas"],
            arrays["gram_weights"],
            arrays["shape_weights"],
        )

    def score(self, seen: Seen) -> float:
        """The gain that the kernel machine expects."""
        near = np.exp(2 * VECTOR_SHARPNESS * (self.vectors.times(seen.vector) - 1.0))
        apart = self.shape_squares - 2.0 * self.shapes.times(seen.shape) + seen.shape @ seen.shape
        alike = np.exp(apart / (-2.0 * len(seen.shape)))
        linear = self.gram_weights[seen.buckets] @ seen.weights + self.shape_weights @ seen.shape
        return float((near + alike + near * alike) @ self.alphas + linear)


@dataclass(frozen=True, slots=True)
class Forest:
    """All trees in one table of nodes; a leaf points at itself.

    Attributes:
        roots: Node of each tree's root.
        depth: Steps from a root to the deepest leaf.
        vector_axes: [512, axes] main directions of the vectors around `vector_mean`.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    cut: Floats
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Floats
    depth: int
    vector_axes: Rows
    vector_mean: Floats

    @classmethod
    def of(cls, arrays: Arrays) -> Forest:
        """From a file's arrays."""
        return cls(
            arrays["roots"],
            arrays["feature"],
            arrays["cut"],
            arrays["left"],
            arrays["right"],
            arrays["value"],
            int(arrays["depth"]),
            Rows.of(arrays["vector_axes"].T),
            arrays["vector_mean"],
        )

    def score(self, seen: Seen) -> float:
        """Mean of the leaves that a prompt falls into."""
        row = self.row(seen)
        nodes = self.roots
        for _ in range(self.depth):
            below = row[self.feature[nodes]] <= self.cut[nodes]
            nodes = np.where(below, self.left[nodes], self.right[nodes])
        return float(self.value[nodes].mean())

    def row(self, seen: Seen) -> Floats:
        """What the trees look at: main directions, then the shape as it is."""
        directions = self.vector_axes.times(seen.vector - self.vector_mean)
        return np.concatenate([directions, seen.raw_shape]).astype(np.float32)
