"""Turns the residual stream by a fixed rotation, so that 8 bits hold every activation.

A decoder computes the same when its hidden vectors are all multiplied by an orthogonal
matrix R and every matrix that reads or writes them is turned the other way; RMSNorm does
not see it, once its scale is folded into what follows. A few channels of a trained model
are a thousand times as large as the others; after the turn every channel is a sum of all
and nearly Gaussian with variance 1 behind a norm, so that one fixed scale serves all
tokens (QuaRot, Ashkboos et al., 2024, section 4; the rotations R and the values' own are
folded into weights, and nothing is added to the graph).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.edge_worker.kit.reference import Reference
from services.edge_worker.kit.weights import Floats, LlamaConfig, Tensor, Weights

_Matrix = NDArray[np.float64]
_SEED = 0
_CALIBRATION_TOKENS = 128


def rotation(size: int) -> _Matrix:
    """An orthogonal `[size, size]` matrix without large entries.

    Hadamard over the largest power of two in `size`, a cosine transform over the odd
    rest, signs drawn from a fixed seed.
    """
    even = size & -size
    signs = np.random.default_rng(_SEED).choice([-1.0, 1.0], size)
    turned: _Matrix = signs[:, None] * np.kron(_hadamard(even), _cosines(size // even))
    return turned


def _hadamard(size: int) -> _Matrix:
    matrix: _Matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    scaled: _Matrix = matrix / np.sqrt(size)
    return scaled


def _cosines(size: int) -> _Matrix:
    """Orthonormal DCT-II."""
    waves, places = np.ogrid[:size, :size]
    matrix = np.cos(np.pi * (places + 0.5) * waves / size) * np.sqrt(2.0 / size)
    matrix[0] /= np.sqrt(2.0)
    return np.asarray(matrix, dtype=np.float64)


def rotate(weights: Weights) -> Weights:
    """The same model, turned; its norms have scale 1 and its head is a matrix of its own.

    Args:
        weights: The source; it is not changed.
    """
    turner = _Turner(weights)
    turner.ends()
    for layer in range(weights.config.layers):
        turner.layer(f"blk.{layer}")
    config = dataclasses.replace(weights.config, tied=False)
    return dataclasses.replace(weights, config=config, tensors=turner.tensors)


class _Turner:
    """Makes the turned tensors."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._hidden = rotation(weights.config.hidden)
        self._value = rotation(weights.config.head_dim)
        self.tensors: dict[str, Tensor] = {}

    def ends(self) -> None:
        """Embedding and head."""
        config = self._weights.config
        head = self._get("token_embd" if config.tied else "output")
        self._put("token_embd", self._get("token_embd") @ self._hidden)
        self._put("output", (head * self._get("output_norm")) @ self._hidden)
        self._put("output_norm", np.ones(config.hidden))

    def layer(self, at: str) -> None:
        """One layer."""
        config = self._weights.config
        for norm, readers in (
            ("attn_norm", ("attn_q", "attn_k", "attn_v")),
            ("ffn_norm", ("ffn_gate", "ffn_up")),
        ):
            scale = self._get(f"{at}.{norm}")
            self._put(f"{at}.{norm}", np.ones(config.hidden))
            for name in readers:
                self._put(f"{at}.{name}", (self._get(f"{at}.{name}") * scale) @ self._hidden)
        self._values(at, config)
        self._put(f"{at}.ffn_down", self._hidden.T @ self._get(f"{at}.ffn_down"))

    def _values(self, at: str, config: LlamaConfig) -> None:
        """Values turn within each head, and back in what reads the mixed ones."""
        values = self.tensors[f"{at}.attn_v.weight"].floats().astype(np.float64)
        heads = values.reshape(config.kv_heads, config.head_dim, -1)
        self._put(f"{at}.attn_v", (self._value.T @ heads).reshape(values.shape))
        output = self._hidden.T @ self._get(f"{at}.attn_output")
        by_head = output.reshape(config.hidden, config.heads, config.head_dim)
        self._put(f"{at}.attn_output", (by_head @ self._value).reshape(output.shape))

    def _get(self, name: str) -> _Matrix:
        return self._weights[name].floats().astype(np.float64)

    def _put(self, name: str, values: _Matrix) -> None:
        full = f"{name}.weight"
        self.tensors[full] = Tensor(full, values.shape, "F32", values.astype(np.float32))


def input_limits(weights: Weights, sequences: Sequence[list[int]]) -> dict[str, float]:
    """Largest magnitude of each matrix's input over calibration texts, by GGUF name.

    Args:
        weights: A rotated model.
        sequences: Texts, each cut to 128 tokens.
    """
    limits: dict[str, float] = {}

    def observe(name: str, x: Floats) -> None:
        limits[name] = max(limits.get(name, 0.0), float(np.abs(x).max()))

    reference = Reference(weights, observe)
    for tokens in sequences:
        reference.logits(tokens[: min(_CALIBRATION_TOKENS, weights.config.context)])
    return limits
