"""The built graph on ONNX Runtime, against plain numpy and against itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from services.edge_worker.kit.build import convert
from services.edge_worker.kit.reference import Reference
from services.edge_worker.kit.verify import kl_divergence
from services.edge_worker.kit.weights import Weights, read_weights
from services.edge_worker.runtime.base import Runtime
from services.edge_worker.runtime.onnx import OnnxOptions, OnnxRuntime
from services.edge_worker.runtime.pool import OnnxPool
from tests.unit.edge_worker.kit import tiny
from tests.unit.edge_worker.kit.conftest import ORIGIN

TOKENS = np.random.default_rng(3).integers(0, tiny.VOCAB, 60).tolist()


def one(runtime: OnnxRuntime, pool: OnnxPool, tokens: list[int], row: int) -> NDArray[np.float32]:
    return runtime.prefill(pool, row, tokens, 0).copy()


def test_it_is_a_runtime(runtime: OnnxRuntime) -> None:
    typed: Runtime = runtime  # the type checker proves the protocol
    assert typed.info.vocab_size == tiny.VOCAB
    pool = typed.new_pool(3, 16)
    assert typed.info.kv_bytes_per_token * 16 * (pool.slots + 1) == pool.bytes
    assert typed.info.eos_ids == {0, 2}


def test_fp32_equals_the_reference(fp32_runtime: OnnxRuntime, tiny_weights: Weights) -> None:
    wanted = Reference(tiny_weights).logits(TOKENS)
    np.testing.assert_allclose(fp32_runtime.score(TOKENS), wanted, atol=1e-3)


def test_an_own_head_equals_the_reference(tmp_path: Path) -> None:
    path = tiny.write_gguf(tmp_path / "m.gguf", tied=False)
    wanted = Reference(read_weights(path)).logits(TOKENS)
    for recipe, limit in (("fp32", 1e-6), ("q8", 0.05)):
        convert(path, ORIGIN, tmp_path / recipe, recipe)
        found = OnnxRuntime.load(tmp_path / recipe, OnnxOptions(threads=1)).score(TOKENS)
        assert kl_divergence(wanted, found).mean() < limit


def test_q8_is_close_to_the_reference(runtime: OnnxRuntime, tiny_weights: Weights) -> None:
    wanted = Reference(tiny_weights).logits(TOKENS)
    # Random weights spread wider than real ones, and random tokens leave the cache's
    # calibrated ranges: a coarse check that nothing is mixed up.
    assert kl_divergence(wanted, runtime.score(TOKENS)).mean() < 0.05


@pytest.mark.parametrize("chunk", [1, 7, 32, 59])
def test_chunks_equal_one_prefill(runtime: OnnxRuntime, chunk: int) -> None:
    pool = runtime.new_pool(1, 64)
    whole = one(runtime, pool, TOKENS, 0)
    for start in range(0, len(TOKENS), chunk):
        last = runtime.prefill(pool, 1, TOKENS[start : start + chunk], start)
    np.testing.assert_allclose(last, whole, atol=1e-4)


def test_rows_of_any_length_decode_as_if_alone(runtime: OnnxRuntime) -> None:
    lengths = np.array([3, 40, 17, 59], np.int32)
    pool = runtime.new_pool(4, 64)
    for row, length in enumerate(lengths):
        runtime.prefill(pool, row, TOKENS[:length], 0)
    together = runtime.decode(pool, np.array([5, 6, 7, 8]), lengths).copy()
    alone = runtime.new_pool(1, 64)
    for row, length in enumerate(lengths):
        runtime.prefill(alone, 0, TOKENS[:length], 0)
        single = runtime.decode(alone, np.array([5 + row]), lengths[row : row + 1])
        np.testing.assert_allclose(together[row], single[0], atol=1e-5)


def test_decode_continues_prefill(runtime: OnnxRuntime) -> None:
    pool = runtime.new_pool(1, 64)
    whole = one(runtime, pool, TOKENS, 1)
    runtime.prefill(pool, 0, TOKENS[:50], 0)
    for past in range(50, len(TOKENS)):
        step = runtime.decode(pool, np.array(TOKENS[past : past + 1]), np.array([past], np.int32))
    np.testing.assert_allclose(step[0], whole, atol=1e-4)


def test_a_moved_row_goes_on_alike(runtime: OnnxRuntime) -> None:
    pool = runtime.new_pool(3, 64)
    spare = pool.slots
    runtime.prefill(pool, spare, TOKENS[:30], 0)
    runtime.prefill(pool, 0, TOKENS[30:50], 0)
    for dst in range(3):
        runtime.copy_row(pool, spare, dst, 30)
    moved = runtime.decode(pool, np.array([9, 9, 9]), np.full(3, 30, np.int32))
    np.testing.assert_allclose(moved[1:], moved[[0, 0]], atol=1e-5)
    expected = one(runtime, runtime.new_pool(1, 64), [*TOKENS[:30], 9], 0)
    np.testing.assert_allclose(moved[0], expected, atol=1e-4)


def test_pools_do_not_share_a_cache(runtime: OnnxRuntime) -> None:
    first, second = runtime.new_pool(1, 64), runtime.new_pool(1, 64)
    runtime.prefill(first, 0, TOKENS[:20], 0)
    runtime.prefill(second, 0, TOKENS[20:40], 0)
    step = runtime.decode(first, np.array([4]), np.array([20], np.int32))[0].copy()
    expected = one(runtime, runtime.new_pool(1, 64), [*TOKENS[:20], 4], 0)
    np.testing.assert_allclose(step, expected, atol=1e-4)


def test_warm_leaves_a_usable_pool(runtime: OnnxRuntime) -> None:
    pool = runtime.new_pool(2, 64)
    cold = one(runtime, runtime.new_pool(1, 64), TOKENS, 0)
    runtime.warm(pool)
    np.testing.assert_allclose(one(runtime, pool, TOKENS, 2), cold, atol=1e-6)


def test_a_step_writes_only_the_new_position(runtime: OnnxRuntime) -> None:
    pool = runtime.new_pool(2, 64)
    runtime.prefill(pool, 0, TOKENS[:10], 0)
    before = pool.cache.copy()
    runtime.decode(pool, np.array([1]), np.array([10], np.int32))
    changed = np.argwhere((pool.cache != before).any(axis=(0, 1, 3, 5)))
    assert changed.tolist() == [[0, 10]]  # row 0, position 10


@pytest.mark.parametrize(
    ("row", "tokens", "past"),
    [(3, [1], 0), (-1, [1], 0), (0, [], 0), (0, [1] * 17, 0), (0, [1], 16), (0, [tiny.VOCAB], 0),
     (0, [-1], 0), (0, [1], -1)],
)  # fmt: skip
def test_prefill_refuses(runtime: OnnxRuntime, row: int, tokens: list[int], past: int) -> None:
    with pytest.raises(ValueError, match=r"row|token"):
        runtime.prefill(runtime.new_pool(2, 16), row, tokens, past)


@pytest.mark.parametrize(
    ("tokens", "past"),
    [([1], [16]), ([1, 1, 1], [0, 0, 0]), ([1, 1], [0]), ([], []), ([tiny.VOCAB], [0])],
)
def test_decode_refuses(runtime: OnnxRuntime, tokens: list[int], past: list[int]) -> None:
    pool = runtime.new_pool(2, 16)
    with pytest.raises(ValueError, match=r"tokens|full|token id"):
        runtime.decode(pool, np.array(tokens, np.int64), np.array(past, np.int32))


@pytest.mark.parametrize(("slots", "max_tokens"), [(0, 8), (1, 0), (1, tiny.CONTEXT + 1)])
def test_impossible_pools(runtime: OnnxRuntime, slots: int, max_tokens: int) -> None:
    with pytest.raises(ValueError, match="pool"):
        runtime.new_pool(slots, max_tokens)


def test_a_closed_runtime_refuses(runtime: OnnxRuntime) -> None:
    pool = runtime.new_pool(1, 8)
    runtime.close()
    runtime.close()
    with pytest.raises(RuntimeError, match="closed"):
        runtime.prefill(pool, 0, [1], 0)
