"""Evening activations changes the weights and not the model."""

from __future__ import annotations

import numpy as np

from services.edge_worker.kit.reference import Reference
from services.edge_worker.kit.smooth import smooth
from services.edge_worker.kit.weights import Floats, Weights

TOKENS = list(range(3, 40))


def spread(weights: Weights, matrix: str) -> float:
    """Largest channel of a matrix's input over the median one."""
    seen: dict[str, Floats] = {}
    Reference(weights, seen.__setitem__).logits(TOKENS)
    channels = np.abs(seen[matrix]).max(axis=0)
    return float(channels.max() / np.median(channels))


def test_the_float_model_stays_the_same(tiny_weights: Weights) -> None:
    evened = smooth(tiny_weights, [TOKENS])
    before, after = Reference(tiny_weights).logits(TOKENS), Reference(evened).logits(TOKENS)
    np.testing.assert_allclose(after, before, atol=1e-4)


def test_the_source_is_not_changed(tiny_weights: Weights) -> None:
    before = tiny_weights["blk.0.attn_norm"].floats()
    evened = smooth(tiny_weights, [TOKENS])
    np.testing.assert_array_equal(tiny_weights["blk.0.attn_norm"].floats(), before)
    assert (
        evened.tensors["blk.0.attn_norm.weight"]
        is not (tiny_weights.tensors["blk.0.attn_norm.weight"])
    )


def test_channels_come_closer_together(tiny_weights: Weights) -> None:
    evened = smooth(tiny_weights, [TOKENS])
    for matrix in ("blk.1.ffn_down", "blk.1.attn_output"):
        assert spread(evened, matrix) < spread(tiny_weights, matrix)
