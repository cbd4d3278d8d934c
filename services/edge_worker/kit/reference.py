"""An independent forward pass in plain numpy, to judge built models by.

It shares nothing with the graph builder but the GGUF reader: weights are dequantized
as stored, Q and K stay in the file's interleaved order, attention is written out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from services.edge_worker.kit.weights import Floats, LlamaConfig, Weights

_HEAD_ROWS = 128  # positions of the head at once: 128 * 49,152 logits are 25 MB

Observe = Callable[[str, Floats], None]


class Reference:
    """Full-precision Llama (Touvron et al., 2023) with grouped-query attention."""

    def __init__(self, weights: Weights, observe: Observe = lambda _name, _x: None) -> None:
        """Dequantizes every tensor (540 MB for SmolLM2-135M).

        Args:
            weights: The model.
            observe: Called with the GGUF name and the input `[positions, columns]` of
                each matrix of a layer.
        """
        self._observe = observe
        self._config = weights.config
        self._w = {name: tensor.floats() for name, tensor in weights.tensors.items()}

    def logits(self, tokens: list[int]) -> Floats:
        """Logits `[len(tokens), vocab]` after each token of one sequence."""
        hidden = self._get("token_embd")[tokens]
        for layer in range(self._config.layers):
            hidden = self._block(f"blk.{layer}", hidden)
        normed = self._norm(hidden, "output_norm")
        head = self._get("token_embd" if self._config.tied else "output")
        pieces = range(0, len(tokens), _HEAD_ROWS)
        return np.concatenate([normed[i : i + _HEAD_ROWS] @ head.T for i in pieces])

    def _get(self, name: str) -> Floats:
        return self._w[f"{name}.weight"]

    def _norm(self, x: Floats, name: str) -> Floats:
        """RMSNorm (Zhang and Sennrich, 2019)."""
        mean_square = np.mean(np.square(x), axis=-1, keepdims=True)
        normed: Floats = x / np.sqrt(mean_square + np.float32(self._config.eps)) * self._get(name)
        return normed

    def _block(self, at: str, hidden: Floats) -> Floats:
        hidden = hidden + self._attention(at, self._norm(hidden, f"{at}.attn_norm"))
        x = self._norm(hidden, f"{at}.ffn_norm")
        gate = self._times(x, f"{at}.ffn_gate")
        silu = gate / (1 + np.exp(-gate))  # SwiGLU (Shazeer, 2020)
        gated = silu * self._times(x, f"{at}.ffn_up")
        fed: Floats = hidden + self._times(gated, f"{at}.ffn_down")
        return fed

    def _times(self, x: Floats, name: str) -> Floats:
        self._observe(name, x)
        product: Floats = x @ self._get(name).T
        return product

    def _attention(self, at: str, x: Floats) -> Floats:
        c = self._config
        q = rotate_pairs(self._heads(x, f"{at}.attn_q", c.heads), c)
        k = rotate_pairs(self._heads(x, f"{at}.attn_k", c.kv_heads), c)
        v = self._heads(x, f"{at}.attn_v", c.kv_heads)
        group = c.heads // c.kv_heads
        k, v = np.repeat(k, group, axis=0), np.repeat(v, group, axis=0)
        scores = q @ k.swapaxes(1, 2) / np.float32(np.sqrt(c.head_dim))
        future = np.triu(np.full(scores.shape[1:], -np.inf, dtype=np.float32), 1)
        mixed = _softmax(scores + future) @ v
        joined: Floats = mixed.swapaxes(0, 1).reshape(len(x), -1)
        return self._times(joined, f"{at}.attn_output")

    def _heads(self, x: Floats, name: str, heads: int) -> Floats:
        """Projection as `[heads, positions, head_dim]`."""
        projected = self._times(x, name).reshape(len(x), heads, self._config.head_dim)
        heads_first: Floats = projected.swapaxes(0, 1)
        return heads_first


def rotate_pairs(x: Floats, config: LlamaConfig) -> Floats:
    """RoPE over pairs (2j, 2j + 1) of `[heads, positions, head_dim]` (Su et al., 2021)."""
    pair = np.arange(config.head_dim // 2)
    angle = np.arange(x.shape[1])[:, None] * config.rope_base ** (-2 * pair / config.head_dim)
    turn: NDArray[np.complex64] = np.exp(1j * angle).astype(np.complex64)
    turned = np.ascontiguousarray(x).view(np.complex64) * turn
    return turned.view(np.float32)


def _softmax(scores: Floats) -> Floats:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    normal: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return normal
