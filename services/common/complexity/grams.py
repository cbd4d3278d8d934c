"""Runs of one to three pieces of a text, hashed into buckets, with tf-idf weights.

The pieces are those of the embedder's tokenizer, so no text is cut up twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_ORDERS = (1, 2, 3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)


def grams_of(
    pieces: Sequence[int] | NDArray[np.int64], bits: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Buckets (below 2^`bits`, each once) and 1 + log of how often each occurs."""
    tokens = np.asarray(pieces, np.uint64)
    hashed = [_hash(tokens, order, bits) for order in _ORDERS if len(tokens) >= order]
    if not hashed:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    buckets, counts = np.unique(np.concatenate(hashed), return_counts=True)
    return buckets.astype(np.int64), (1.0 + np.log(counts)).astype(np.float32)


def _hash(tokens: NDArray[np.uint64], order: int, bits: int) -> NDArray[np.uint64]:
    """Multiply and fold (as splitmix64 does); wraps around by design of unsigned numbers."""
    count = len(tokens) - order + 1
    mixed = np.full(count, order, np.uint64)
    for at in range(order):
        mixed = (mixed * _GOLDEN) ^ (tokens[at : at + count] + _GOLDEN)
        mixed *= _MIX
        mixed ^= mixed >> _SHIFT
    return mixed >> np.uint64(64 - bits)
