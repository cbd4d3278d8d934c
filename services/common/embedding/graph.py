"""USE multilingual v3 as an ONNX graph: a deep averaging network over n-gram convolutions.

Y. Yang et al., "Multilingual Universal Sentence Encoder for Semantic Retrieval", 2019.
Texts of a batch lie one after the other in one row of tokens; windows that would reach
into a neighbour point at a row of zeros, so a text's vector does not depend on company.

Inputs: `ids` [tokens], `windows` [tokens, 5] (positions −2 … +2, or `tokens` for none),
`member` [texts, tokens] (1 where the token is the text's), `lengths` [texts].
Output: `vectors` [texts, 512], of unit length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from services.common.embedding.files import LEFT, RIGHT

CHUNKS = 17
WIDTH = 512
_CONV = 256
# n-gram length and how many of its tokens stand before.
_ORDERS = ((2, 0), (3, 1), (5, 2))
_OPSET = 17

Weights = Mapping[str, NDArray[Any]]


class _Graph:
    """Collects nodes; each method gives back the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []

    def const(self, array: NDArray[Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        name = out or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def dense(self, x: str, weight: NDArray[Any], bias: NDArray[Any]) -> str:
        return self.op("Add", self.op("MatMul", x, self.const(weight)), self.const(bias))

    def norm(self, x: str, gain: NDArray[Any], bias: NDArray[Any], eps: float) -> str:
        return self.op(
            "LayerNormalization", x, self.const(gain), self.const(bias), axis=-1, epsilon=eps
        )

    def columns(self, x: str, first: int, end: int) -> str:
        bounds = (self.const(np.array([at], np.int64)) for at in (first, end, 1))
        return self.op("Slice", x, *bounds)


def build_graph(weights: Weights) -> onnx.ModelProto:
    """The model from the arrays of the published `weights.npz`."""
    graph, eps = _Graph(), float(weights["eps"])
    embedded = _embed(graph, weights)
    projected = graph.norm(
        graph.dense(embedded, _joined(weights, "proj", 1), _joined(weights, "proj_b", 0)),
        _joined(weights, "ln_g", 0),
        _joined(weights, "ln_b", 0),
        eps,
    )
    branches = [_branch(graph, weights, projected, place) for place in range(len(_ORDERS))]
    features = graph.op("Concat", embedded, *branches, axis=1)
    pooled = _pool(graph, weights, graph.norm(features, weights["ln_g"], weights["ln_b"], eps))
    _head(graph, weights, pooled, eps)
    return _model(graph)


def _joined(weights: Weights, name: str, axis: int) -> NDArray[Any]:
    return np.concatenate([weights[f"{name}{order}"] for order, _ in _ORDERS], axis=axis)


def _embed(graph: _Graph, weights: Weights) -> str:
    """Rows of the 8-bit table; each of 17 interleaved parts has its own scale and zero."""
    parts = [weights[f"q{part + 1}"] for part in range(CHUNKS)]
    table = np.stack(parts, axis=1).reshape(-1, WIDTH)
    part = graph.op("Mod", "ids", graph.const(np.array(CHUNKS, np.int64)))
    raw = graph.op("Cast", graph.op("Gather", graph.const(table), "ids"), to=TensorProto.FLOAT)
    scale = graph.op("Gather", graph.const(weights["scale"][:, None]), part)
    low = graph.op("Gather", graph.const(weights["lo"][:, None]), part)
    return graph.op("Add", graph.op("Mul", raw, scale), low)


def _branch(graph: _Graph, weights: Weights, projected: str, place: int) -> str:
    """Two convolutions with a way around each."""
    order, left = _ORDERS[place]
    x = graph.columns(projected, place * _CONV, (place + 1) * _CONV)
    windows = graph.columns("windows", LEFT - left, LEFT - left + order)
    for layer in (1, 2):
        padded = graph.op("Concat", x, graph.const(np.zeros((1, _CONV), np.float32)), axis=0)
        gathered = graph.op("Gather", padded, windows)
        shape = graph.const(np.array([-1, order * _CONV], np.int64))
        flat = graph.op("Reshape", gathered, shape)
        weight, bias = weights[f"w{layer}_{order}"], weights[f"b{layer}_{order}"]
        x = graph.op("Add", graph.op("Relu", graph.dense(flat, weight, bias)), x)
    return x


def _pool(graph: _Graph, weights: Weights, features: str) -> str:
    """Sum over the tokens of a text by the root of their number."""
    summed = graph.op(
        "MatMul", graph.op("MatMul", "member", features), graph.const(weights["cnn_W"])
    )
    axis = graph.const(np.array([1], np.int64))
    lengths = graph.op("Unsqueeze", "lengths", axis)
    biased = graph.op("Add", summed, graph.op("Mul", lengths, graph.const(weights["cnn_b"][None])))
    return graph.op("Div", biased, graph.op("Sqrt", lengths))


def _head(graph: _Graph, weights: Weights, x: str, eps: float) -> None:
    def times(value: str, name: str) -> str:
        return graph.op("MatMul", value, graph.const(weights[name]))

    y0 = graph.op("Relu", times(x, "d0"))
    y1 = graph.op("Relu", graph.op("Add", times(x, "p1"), times(y0, "d1")))
    y2 = graph.op("Relu", times(y1, "d2"))
    z = graph.op("Tanh", graph.op("Add", times(y1, "p3"), times(y2, "d3")))
    square = graph.op("ReduceSum", graph.op("Mul", z, z), graph.const(np.array([1], np.int64)))
    floor = graph.op("Max", square, graph.const(np.array(eps, np.float32)))
    graph.op("Div", z, graph.op("Sqrt", floor), out="vectors")


def _model(graph: _Graph) -> onnx.ModelProto:
    def value(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, list(shape))

    made = helper.make_graph(
        graph.nodes,
        "use-multilingual-v3",
        [
            value("ids", TensorProto.INT64, "tokens"),
            value("windows", TensorProto.INT64, "tokens", LEFT + 1 + RIGHT),
            value("member", TensorProto.FLOAT, "texts", "tokens"),
            value("lengths", TensorProto.FLOAT, "texts"),
        ],
        [value("vectors", TensorProto.FLOAT, "texts", WIDTH)],
        graph.constants,
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
