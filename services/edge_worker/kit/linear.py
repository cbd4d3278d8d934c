"""The matrices of a graph, by recipe: 8-bit integers or full precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, helper

from services.common.weights.errors import UnsupportedModel
from services.edge_worker.kit import quant
from services.edge_worker.kit.store import TensorStore
from services.edge_worker.kit.weights import Floats, Weights

RECIPES = ("q8", "fp32")
# Blocks of 64 run about 20 % faster than 32. 128 would give 10 % more, but its kernel
# rounds a row differently in another batch, and a greedy answer must not depend on it.
_MATRIX_BLOCK = 64
# Behind the last norm a rotated vector is nearly Gaussian with variance 1: more is cut.
_HEAD_LIMIT = 4.5
_MS = "com.microsoft"


class Linears(Protocol):
    """Every matrix product of a decoder; each method gives nodes from input to output."""

    def embed(self, ids: str, out: str) -> list[NodeProto]:
        """Token ids to vectors."""
        ...

    def qkv(self, at: str, x: str, out: str) -> list[NodeProto]:
        """Queries, keys and values of a layer side by side in one output."""
        ...

    def gate_up(self, at: str, x: str, gate: str, up: str) -> list[NodeProto]:
        """Both inputs of the gated unit."""
        ...

    def plain(self, name: str, x: str, out: str) -> list[NodeProto]:
        """One matrix by its GGUF name."""
        ...

    def head(self, x: str, out: str) -> list[NodeProto]:
        """Vectors `[n, hidden]` to logits `[n, vocab]`."""
        ...


def recipe_linears(
    recipe: str, weights: Weights, store: TensorStore, limits: Mapping[str, float]
) -> Linears:
    """The matrices of a recipe; `limits` as `IntLinears` takes them.

    Raises:
        UnsupportedModel: No such recipe.
    """
    if recipe == "q8":
        return IntLinears(weights, store, limits)
    if recipe == "fp32":
        return FloatLinears(weights, store)
    raise UnsupportedModel(f"recipe {recipe!r}: choose one of {', '.join(RECIPES)}")


def rotary_order(heads: int, head_dim: int) -> NDArray[np.intp]:
    """Row order that turns GGUF's interleaved RoPE pairs into halves.

    llama.cpp stores the rows of Q and K so that pairs (2j, 2j + 1) rotate together;
    `rotary_interleaved=0` rotates (j, j + head_dim / 2), which vectorizes better.
    """
    rows = np.arange(heads * head_dim).reshape(heads, head_dim // 2, 2)
    return rows.swapaxes(1, 2).reshape(-1)


class IntLinears:
    """Eight-bit activations and weights, products in integers (recipe `q8`).

    Two kinds. Where most of the work is (gated unit, head) activations have one fixed scale
    a matrix and weights one a row, which runs on a machine's fastest integer units. What
    reacts to small errors (attention) or has no bounded input (`ffn_down`) gets a scale for
    each block of 64. Neither lets a row's result depend on who shares the batch.
    """

    def __init__(self, weights: Weights, store: TensorStore, limits: Mapping[str, float]) -> None:
        """Reads from `weights`, which are rotated, writes initializers to `store`.

        Args:
            weights: As `kit.rotate` leaves them.
            store: Where tensors go.
            limits: Largest input of each `ffn_up`, by GGUF name.
        """
        self._weights = weights
        self._store = store
        self._limits = limits
        self._zero = store.add("zero", np.array(quant.ZERO, dtype=np.uint8))

    def embed(self, ids: str, out: str) -> list[NodeProto]:
        """See `Linears`."""
        table = quant.quantize(self._weights["token_embd"])
        data = table.data.reshape(len(table.data), -1)
        inputs = [
            self._store.add("embedding.data", data),
            ids,
            self._store.add("embedding.scales", table.scales),
        ]
        return [
            helper.make_node(
                "GatherBlockQuantized",
                inputs,
                [out],
                name=f"embed:{out}",
                domain=_MS,
                bits=8,
                block_size=quant.BLOCK,
                gather_axis=0,
                quantize_axis=1,
            )
        ]

    def qkv(self, at: str, x: str, out: str) -> list[NodeProto]:
        """See `Linears`."""
        config = self._weights.config
        q = self._floats(f"{at}.attn_q")[rotary_order(config.heads, config.head_dim)]
        k = self._floats(f"{at}.attn_k")[rotary_order(config.kv_heads, config.head_dim)]
        matrix = np.concatenate([q, k, self._floats(f"{at}.attn_v")])
        return self._blocks(f"{at}.qkv", matrix, x, out)

    def gate_up(self, at: str, x: str, gate: str, up: str) -> list[NodeProto]:
        """See `Linears`."""
        both = [self._floats(f"{at}.ffn_gate"), self._floats(f"{at}.ffn_up")]
        joint = f"{at}.gate_up"
        split = helper.make_node(
            "Split", [joint], [gate, up], name=f"split:{joint}", axis=-1, num_outputs=2
        )
        matrix, limit = np.concatenate(both), self._limits[f"{at}.ffn_up"]
        return [*self._product(joint, matrix, x, joint, limit), split]

    def plain(self, name: str, x: str, out: str) -> list[NodeProto]:
        """See `Linears`."""
        return self._blocks(name, self._floats(name), x, out)

    def head(self, x: str, out: str) -> list[NodeProto]:
        """See `Linears`."""
        return self._product("output", self._floats("output"), x, out, _HEAD_LIMIT)

    def _blocks(self, name: str, matrix: Floats, x: str, out: str) -> list[NodeProto]:
        blocks = quant.quantize_floats(matrix, _MATRIX_BLOCK)
        data = self._store.add(f"{name}.data", blocks.data)
        scales = self._store.add(f"{name}.scales", blocks.scales)
        return [_matmul_n_bits(x, data, scales, out, len(blocks.data), blocks.cols, blocks.block)]

    def _floats(self, name: str) -> Floats:
        return self._weights[name].floats()

    def _product(
        self, name: str, matrix: Floats, x: str, out: str, limit: float
    ) -> list[NodeProto]:
        rows = quant.quantize_rows(matrix)
        step = self._store.add(f"{name}.step", np.array(limit / quant.LARGEST, dtype=np.float32))
        data = self._store.add(f"{name}.data", rows.data.T)
        scales = self._store.add(f"{name}.scales", rows.scales)
        whole = f"{out}.input"
        return [
            helper.make_node(
                "QuantizeLinear", [x, step, self._zero], [whole], name=f"quantize:{out}"
            ),
            helper.make_node(
                "MatMulIntegerToFloat", [whole, data, step, scales, self._zero], [out],
                name=f"matmul:{out}", domain=_MS,
            ),
        ]  # fmt: skip


def _matmul_n_bits(
    x: str, data: str, scales: str, out: str, rows: int, cols: int, block: int
) -> NodeProto:
    # accuracy_level 4: activations are rounded to int8 per block, products are integer.
    return helper.make_node(
        "MatMulNBits", [x, data, scales], [out], name=f"matmul:{out}", domain=_MS,
        K=cols, N=rows, bits=8, block_size=block, accuracy_level=4,
    )  # fmt: skip


class FloatLinears:
    """Full-precision MatMul, Gather and Gemm (recipe `fp32`)."""

    def __init__(self, weights: Weights, store: TensorStore) -> None:
        """Reads from `weights`, writes initializers to `store`."""
        self._weights = weights
        self._store = store

    def embed(self, ids: str, out: str) -> list[NodeProto]:
        """See `Linears`."""
        table = self._store.add("embedding", self._weights["token_embd"].floats())
        return [helper.make_node("Gather", [table, ids], [out], name=f"embed:{out}", axis=0)]

    def qkv(self, at: str, x: str, out: str) -> list[NodeProto]:
        """See `Linears`."""
        config = self._weights.config
        q = self._weights[f"{at}.attn_q"].floats()[rotary_order(config.heads, config.head_dim)]
        k = self._weights[f"{at}.attn_k"].floats()[rotary_order(config.kv_heads, config.head_dim)]
        v = self._weights[f"{at}.attn_v"].floats()
        return [self._product(f"{at}.qkv", np.concatenate([q, k, v]), x, out)]

    def gate_up(self, at: str, x: str, gate: str, up: str) -> list[NodeProto]:
        """See `Linears`."""
        return [*self.plain(f"{at}.ffn_gate", x, gate), *self.plain(f"{at}.ffn_up", x, up)]

    def plain(self, name: str, x: str, out: str) -> list[NodeProto]:
        """See `Linears`."""
        return [self._product(name, self._weights[name].floats(), x, out)]

    def head(self, x: str, out: str) -> list[NodeProto]:
        """See `Linears`."""
        table = "embedding"
        if not self._weights.config.tied:
            table = self._store.add("output", self._weights["output"].floats())
        return [helper.make_node("Gemm", [x, table], [out], name=f"matmul:{out}", transB=1)]

    def _product(self, name: str, matrix: NDArray[np.float32], x: str, out: str) -> NodeProto:
        stored = self._store.add(f"{name}.weight", matrix.T)
        return helper.make_node("MatMul", [x, stored], [out], name=f"matmul:{out}")
