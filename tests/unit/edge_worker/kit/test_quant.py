"""Eight-bit blocks and the order of rotary rows."""

from __future__ import annotations

import numpy as np
import pytest

from services.common.weights.errors import UnsupportedModel
from services.edge_worker.kit import quant
from services.edge_worker.kit.linear import rotary_order
from services.edge_worker.kit.weights import Tensor, Weights


def test_q8_0_maps_without_loss(tiny_weights: Weights) -> None:
    table = tiny_weights["token_embd"]
    assert table.kind == "Q8_0"
    np.testing.assert_array_equal(quant.quantize(table).floats(), table.floats())


def test_rounding_error_is_half_a_step() -> None:
    values = np.random.default_rng(1).standard_normal((5, 96)).astype(np.float32)
    blocks = quant.quantize_floats(values, 32)
    error = np.abs(blocks.floats() - values).reshape(5, 3, 32)
    assert np.all(error <= blocks.scales[..., None] * 0.5001)


def test_a_block_of_zeros_stays_zero() -> None:
    blocks = quant.quantize_floats(np.zeros((1, 32), np.float32), 32)
    assert not blocks.floats().any()


def test_odd_columns_are_padded_with_zeros() -> None:
    values = np.random.default_rng(2).standard_normal((3, 100)).astype(np.float32)
    blocks = quant.quantize_floats(values, 64)
    assert blocks.data.shape == (3, 2, 64)
    assert (blocks.data[:, 1, 36:] == 128).all()
    np.testing.assert_allclose(blocks.floats(), values, atol=blocks.scales.max())


def test_columns_must_be_whole_blocks() -> None:
    odd = np.zeros((2, 33), np.float32)
    with pytest.raises(UnsupportedModel, match="33"):
        quant.quantize(Tensor("odd", (2, 33), "F32", odd))


def test_rotary_order_undoes_the_interleaving() -> None:
    # llama.cpp's converter turns halves into pairs; our order must turn them back.
    heads, head_dim = 3, 8
    halves = np.arange(heads * head_dim)
    pairs = halves.reshape(heads, 2, head_dim // 2).swapaxes(1, 2).reshape(-1)
    np.testing.assert_array_equal(pairs[rotary_order(heads, head_dim)], halves)
