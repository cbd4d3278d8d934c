"""Builds the ONNX graph of a Llama decoder that serves many rows at once.

Inputs: `input_ids [batch, sequence]`, `seqlens_k [batch]` (positions after this call,
less one), `total_sequence_length []` (the longest of them), `logit_rows [n]` (which of
the batch * sequence positions get logits) and for each layer `past.i.key` and
`past.i.value`, `[batch, kv_heads, capacity, head_dim]`, float32 here and int8 after
`kvcache.quantize_cache`. Outputs: `logits [n, vocab]` and `present.i.*`, to be bound to
the buffers of `past.i.*`: GroupQueryAttention then writes the new positions in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from services.edge_worker.kit.linear import Linears, recipe_linears
from services.edge_worker.kit.store import MODEL_FILE, TensorStore
from services.edge_worker.kit.weights import LlamaConfig, Weights

_MS = "com.microsoft"
_OPSETS = {"": 21, _MS: 1}
_IR_VERSION = 10  # what opset 21 came with

OnLayer = Callable[[int, int], None]


def write_graph(
    weights: Weights,
    folder: Path,
    recipe: str,
    on_layer: OnLayer,
    limits: Mapping[str, float] | None = None,
) -> None:
    """Writes `model.onnx` and `model.onnx.data` into an existing folder.

    Args:
        weights: The source.
        folder: Where to write.
        recipe: `q8` or `fp32`.
        on_layer: Called with (layers done, layers) after each layer.
        limits: `q8`: largest inputs of matrices with a fixed scale (`kit.rotate`).
    """
    with TensorStore(folder) as store:
        builder = _Builder(weights, store, recipe_linears(recipe, weights, store, limits or {}))
        graph = builder.build(on_layer)
    opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="tandem-model-kit")
    model.ir_version = _IR_VERSION
    onnx.save_model(model, folder / MODEL_FILE)


def rope_tables(config: LlamaConfig) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosine and sine `[context, head_dim / 2]` of RoPE (Su et al., 2021, eq. 15)."""
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
    angles = np.outer(np.arange(config.context), config.rope_base**-exponents)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class _Builder:
    """Appends the nodes of one decoder, layer after layer."""

    def __init__(self, weights: Weights, store: TensorStore, linears: Linears) -> None:
        self._weights = weights
        self._config = weights.config
        self._store = store
        self._linears = linears
        self._nodes: list[NodeProto] = []

    def build(self, on_layer: OnLayer) -> GraphProto:
        """The whole graph."""
        config = self._config
        cos, sin = rope_tables(config)
        self._store.add("rope.cos", cos)
        self._store.add("rope.sin", sin)
        self._nodes += self._linears.embed("input_ids", "hidden")
        residual, normed = "hidden", self._first_norm()
        for layer in range(config.layers):
            residual, normed = self._layer(layer, residual, normed)
            on_layer(layer + 1, config.layers)
        self._head(normed)
        return helper.make_graph(
            self._nodes,
            "llama",
            _inputs(config),
            _outputs(config),
            initializer=self._store.initializers,
        )

    def _add(self, op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        domain = str(attributes.pop("domain", ""))
        name = f"{op}:{outputs[0]}"
        self._nodes.append(
            helper.make_node(op, inputs, outputs, name=name, domain=domain, **attributes)
        )

    def _first_norm(self) -> str:
        scale = self._norm_scale("blk.0.attn_norm")
        self._add(
            "SimplifiedLayerNormalization", ["hidden", scale], ["normed"],
            axis=-1, epsilon=self._config.eps, stash_type=1,
        )  # fmt: skip
        return "normed"

    def _norm_scale(self, name: str) -> str:
        return self._store.add(name, self._weights[name].floats())

    def _layer(self, layer: int, residual: str, normed: str) -> tuple[str, str]:
        at = f"blk.{layer}"
        attended = self._attention(layer, at, normed)
        residual, normed = self._skip_norm(residual, attended, f"{at}.ffn_norm")
        fed = self._feed_forward(at, normed)
        last = layer + 1 == self._config.layers
        following = "output_norm" if last else f"blk.{layer + 1}.attn_norm"
        return self._skip_norm(residual, fed, following)

    def _attention(self, layer: int, at: str, normed: str) -> str:
        self._nodes += self._linears.qkv(at, normed, f"{at}.qkv")
        past = [f"past.{layer}.key", f"past.{layer}.value"]
        present = [f"present.{layer}.key", f"present.{layer}.value"]
        lengths, rope = ["seqlens_k", "total_sequence_length"], ["rope.cos", "rope.sin"]
        self._add(
            "GroupQueryAttention",
            [f"{at}.qkv", "", "", *past, *lengths, *rope],
            [f"{at}.attended", *present],
            domain=_MS, num_heads=self._config.heads, kv_num_heads=self._config.kv_heads,
            do_rotary=1, rotary_interleaved=0, scale=self._config.head_dim**-0.5,
        )  # fmt: skip
        self._nodes += self._linears.plain(f"{at}.attn_output", f"{at}.attended", f"{at}.mixed")
        return f"{at}.mixed"

    def _feed_forward(self, at: str, normed: str) -> str:
        self._nodes += self._linears.gate_up(at, normed, f"{at}.gate", f"{at}.up")
        self._add("QuickGelu", [f"{at}.gate"], [f"{at}.silu"], domain=_MS, alpha=1.0)
        self._add("Mul", [f"{at}.silu", f"{at}.up"], [f"{at}.gated"])
        self._nodes += self._linears.plain(f"{at}.ffn_down", f"{at}.gated", f"{at}.fed")
        return f"{at}.fed"

    def _skip_norm(self, residual: str, update: str, norm: str) -> tuple[str, str]:
        scale = self._norm_scale(norm)
        total, normed = f"{norm}.residual", f"{norm}.normed"
        self._add(
            "SkipSimplifiedLayerNormalization", [residual, update, scale],
            [normed, "", "", total], domain=_MS, epsilon=self._config.eps,
        )  # fmt: skip
        return total, normed

    def _head(self, normed: str) -> None:
        flat = self._store.add("flat", np.array([-1, self._config.hidden], dtype=np.int64))
        self._add("Reshape", [normed, flat], ["positions"])
        self._add("Gather", ["positions", "logit_rows"], ["chosen"], axis=0)
        self._nodes += self._linears.head("chosen", "logits")


def _cache(config: LlamaConfig, prefix: str) -> list[ValueInfoProto]:
    shape: list[str | int | None] = ["batch", config.kv_heads, "capacity", config.head_dim]
    return [
        helper.make_tensor_value_info(f"{prefix}.{layer}.{kind}", TensorProto.FLOAT, shape)
        for layer in range(config.layers)
        for kind in ("key", "value")
    ]


def _inputs(config: LlamaConfig) -> list[ValueInfoProto]:
    return [
        helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"]),
        helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, ["batch"]),
        helper.make_tensor_value_info("total_sequence_length", TensorProto.INT32, []),
        helper.make_tensor_value_info("logit_rows", TensorProto.INT64, ["chosen"]),
        *_cache(config, "past"),
    ]


def _outputs(config: LlamaConfig) -> list[ValueInfoProto]:
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["chosen", config.vocab])
    return [logits, *_cache(config, "present")]
