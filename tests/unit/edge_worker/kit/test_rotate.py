"""Turning the residual stream changes the weights and not the model."""

from __future__ import annotations

import numpy as np
import pytest

from services.edge_worker.kit import quant
from services.edge_worker.kit.reference import Reference
from services.edge_worker.kit.rotate import input_limits, rotate, rotation
from services.edge_worker.kit.weights import Weights

TOKENS = list(range(3, 40))


@pytest.mark.parametrize("size", [1, 8, 24, 64, 576])
def test_a_rotation_keeps_lengths_and_spreads_every_channel(size: int) -> None:
    matrix = rotation(size)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(size), atol=1e-12)
    assert np.abs(matrix).max() <= np.sqrt(2.0 / size) + 1e-12


def test_the_float_model_stays_the_same(tiny_weights: Weights) -> None:
    turned = rotate(tiny_weights)
    before, after = Reference(tiny_weights).logits(TOKENS), Reference(turned).logits(TOKENS)
    np.testing.assert_allclose(after, before, atol=1e-3)


def test_the_source_is_not_changed(tiny_weights: Weights) -> None:
    before = tiny_weights["blk.0.attn_norm"].floats()
    turned = rotate(tiny_weights)
    np.testing.assert_array_equal(tiny_weights["blk.0.attn_norm"].floats(), before)
    assert not turned.config.tied
    assert (turned["blk.0.attn_norm"].floats() == 1).all()


def test_limits_hold_what_the_texts_reach(tiny_weights: Weights) -> None:
    turned, seen = rotate(tiny_weights), []

    def observe(name: str, x: np.ndarray) -> None:
        if name == "blk.1.ffn_up":
            seen.append(float(np.abs(x).max()))

    limits = input_limits(turned, [TOKENS, TOKENS[:5]])
    reference = Reference(turned, observe)
    for tokens in (TOKENS, TOKENS[:5]):
        reference.logits(tokens)
    assert limits["blk.1.ffn_up"] == max(seen)


def test_rows_round_to_half_a_step_and_zeros_stay() -> None:
    values = np.random.default_rng(3).standard_normal((5, 96)).astype(np.float32)
    values[2] = 0
    rows = quant.quantize_rows(values)
    error = np.abs(rows.data * rows.scales[:, None] - values)
    assert (error <= rows.scales[:, None] * 0.5001).all()
    assert not rows.data[2].any()
