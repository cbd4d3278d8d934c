"""The comparison with the reference, and that it can fail."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from services.edge_worker.kit.reference import Reference
from services.edge_worker.kit.verify import Limits, compare, kl_divergence
from services.edge_worker.kit.weights import Weights
from services.edge_worker.runtime.onnx import OnnxRuntime

SEQUENCES = [[1, 5, 9, 200, 44, 3], [7, 7, 8, 100]]


def test_equal_logits_have_no_divergence() -> None:
    logits = np.array([[1.0, 2.0, 3.0]], np.float32)
    assert kl_divergence(logits, logits + 5)[0] == pytest.approx(0, abs=1e-6)


def test_divergence_is_that_of_the_formula() -> None:
    p, q = np.array([[0.5, 0.5]], np.float32), np.array([[0.9, 0.1]], np.float32)
    expected = 0.5 * np.log(0.5 / 0.9) + 0.5 * np.log(0.5 / 0.1)
    assert kl_divergence(np.log(p), np.log(q))[0] == pytest.approx(expected, rel=1e-5)


def test_a_built_model_passes(runtime: OnnxRuntime, tiny_weights: Weights) -> None:
    result = compare(runtime, Reference(tiny_weights), SEQUENCES, Limits(top1=0.8))
    assert result.passed
    assert result.positions == 10


def test_other_weights_fail(runtime: OnnxRuntime, tiny_weights: Weights) -> None:
    swapped = dict(tiny_weights.tensors)
    swapped["blk.0.attn_q.weight"] = tiny_weights.tensors["blk.1.attn_q.weight"]
    other = Reference(dataclasses.replace(tiny_weights, tensors=swapped))
    assert not compare(runtime, other, SEQUENCES).passed
