"""KV cache of one lane and the IO bindings that let ONNX Runtime write into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from services.edge_worker.kit.manifest import KvLayout
from services.edge_worker.runtime.base import Logits


@dataclass(frozen=True, slots=True)
class Binding:
    """A prepared call: the binding, the rows it covers and where its logits appear."""

    io: ort.IOBinding
    logits: Logits


class OnnxPool:
    """Buffers that stay where they are, so that bindings to them can be kept.

    `cache[layer, kind]` is `[rows, kv_heads, max_tokens, head_dim]`; any range of rows is
    contiguous and can be bound as past and present alike, without a copy.
    """

    def __init__(
        self, session: ort.InferenceSession, kv: KvLayout, vocab: int, slots: int, max_tokens: int
    ) -> None:
        """Reserves the buffers; calloc'ed memory costs nothing until touched."""
        rows = slots + 1
        self.slots = slots
        self.max_tokens = max_tokens
        self.cache: NDArray[Any] = np.zeros(
            (kv.layers, 2, rows, kv.kv_heads, max_tokens, kv.head_dim), dtype=np.dtype(kv.dtype)
        )
        self.tokens: NDArray[np.int64] = np.zeros((rows, 1), dtype=np.int64)
        self.past: NDArray[np.int32] = np.zeros(rows, dtype=np.int32)
        self.total: NDArray[np.int32] = np.zeros((), dtype=np.int32)
        self.last: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._order: NDArray[np.int64] = np.arange(rows, dtype=np.int64)
        self._logits: Logits = np.zeros((rows, vocab), dtype=np.float32)
        self._session = session
        self._decode: dict[int, Binding] = {}
        self._prefill: dict[int, Binding] = {}

    @property
    def bytes(self) -> int:
        """Size of the cache when every position has been touched."""
        return self.cache.nbytes

    def decode_binding(self, batch: int) -> Binding:
        """One token for each of rows 0..batch-1, inputs in `tokens`, `past`, `total`."""
        if batch not in self._decode:
            io = self._bind(slice(0, batch))
            bind_input(io, "input_ids", self.tokens[:batch])
            bind_input(io, "logit_rows", self._order[:batch])
            bind_output(io, "logits", self._logits[:batch])
            self._decode[batch] = Binding(io, self._logits[:batch])
        return self._decode[batch]

    def prefill_binding(self, row: int) -> Binding:
        """A chunk into `row`; the caller binds `input_ids`, whose length varies.

        The row's entry of `past` is read as `seqlens_k`, `last` as `logit_rows`.
        """
        if row not in self._prefill:
            io = self._bind(slice(row, row + 1))
            bind_input(io, "logit_rows", self.last)
            bind_output(io, "logits", self._logits[row : row + 1])
            self._prefill[row] = Binding(io, self._logits[row : row + 1])
        return self._prefill[row]

    def _bind(self, rows: slice) -> ort.IOBinding:
        io = self._session.io_binding()
        bind_input(io, "seqlens_k", self.past[rows])
        bind_input(io, "total_sequence_length", self.total)
        for layer, pair in enumerate(self.cache):
            for kind, buffer in zip(("key", "value"), pair, strict=True):
                bind_input(io, f"past.{layer}.{kind}", buffer[rows])
                bind_output(io, f"present.{layer}.{kind}", buffer[rows])
        return io


def bind_input(io: ort.IOBinding, name: str, array: NDArray[Any]) -> None:
    """Binds a contiguous array by address; the caller keeps it alive."""
    io.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)


def bind_output(io: ort.IOBinding, name: str, array: NDArray[Any]) -> None:
    """Binds a contiguous array that receives an output; the caller keeps it alive."""
    io.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
