"""Scales of the 8-bit cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from services.edge_worker.kit.kvcache import channel_ranges, channel_scales
from tests.unit.edge_worker.kit import tiny


def test_ranges_have_the_shape_of_the_cache(fp32_model: Path) -> None:
    ranges = channel_ranges(fp32_model, [[1, 2, 3], list(range(200))])
    assert ranges.shape == (tiny.LAYERS, 2, tiny.KV_HEADS, tiny.HEAD_DIM)
    assert ranges.min() > 0


def test_scales_cover_the_range_with_little_margin() -> None:
    ranges = np.random.default_rng(0).uniform(0.1, 9, (2, 2, 1, 32)).astype(np.float32)
    values = channel_scales(ranges)[:, 1] * 127 / ranges[:, 1]
    assert values.min() >= 0.9999
    assert values.max() < 1.1


def test_rotating_pairs_share_a_scale() -> None:
    ranges = np.random.default_rng(1).uniform(0.1, 9, (1, 2, 1, 8)).astype(np.float32)
    keys = channel_scales(ranges)[0, 0, 0]
    np.testing.assert_array_equal(keys[:4], keys[4:])


def test_a_dead_channel_has_a_scale() -> None:
    assert channel_scales(np.zeros((1, 2, 1, 4), np.float32)).min() > 0
