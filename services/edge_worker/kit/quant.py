"""Eight-bit quantization, by blocks for MatMulNBits and by rows for integer products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.common.weights.errors import UnsupportedModel
from services.edge_worker.kit.weights import Floats, Tensor

BLOCK = 32  # of GGUF, kept for tables that map without loss
ZERO = 128  # of unsigned bytes; MatMulNBits' default too
LARGEST = 127
_Q8_0_BYTES = 2 + BLOCK  # an fp16 scale, then 32 int8


@dataclass(frozen=True, slots=True)
class Blocks:
    """A matrix as bytes: value = (data - 128) * scale, one scale a block of columns.

    Attributes:
        data: `[rows, blocks, block]` uint8; padding columns hold 128, which is zero.
        scales: `[rows, blocks]` float32.
        cols: Columns without the padding.
    """

    data: NDArray[np.uint8]
    scales: Floats
    cols: int

    @property
    def block(self) -> int:
        """Columns that share a scale."""
        return int(self.data.shape[2])

    def floats(self) -> Floats:
        """Dequantized `[rows, cols]`."""
        centred = self.data.astype(np.float32) - ZERO
        values: Floats = (centred * self.scales[..., None]).reshape(len(self.data), -1)
        return values[:, : self.cols]


def quantize(tensor: Tensor) -> Blocks:
    """Blocks of 32 of a stored matrix; without loss from Q8_0.

    Raises:
        UnsupportedModel: The columns are not a multiple of 32.
    """
    if len(tensor.shape) != 2 or tensor.shape[1] % BLOCK:
        raise UnsupportedModel(f"{tensor.name}: shape {tensor.shape} has no blocks of {BLOCK}")
    if tensor.kind == "Q8_0":
        return _from_q8_0(tensor)
    return quantize_floats(tensor.floats(), BLOCK)


def _from_q8_0(tensor: Tensor) -> Blocks:
    rows, cols = tensor.shape
    stored = np.ascontiguousarray(tensor.raw).reshape(rows, cols // BLOCK, _Q8_0_BYTES)
    scales = np.ascontiguousarray(stored[..., :2]).view(np.float16)[..., 0]
    # int8 + 128 as uint8 is the same byte with its sign bit flipped.
    return Blocks(stored[..., 2:] ^ np.uint8(ZERO), scales.astype(np.float32), cols)


def quantize_floats(values: Floats, block: int) -> Blocks:
    """Symmetric rounding to 8 bits, largest magnitude of a block at 127."""
    rows, cols = values.shape
    padded = np.pad(values, ((0, 0), (0, -cols % block)))
    blocks = padded.reshape(rows, -1, block)
    scales = np.abs(blocks).max(axis=2) / np.float32(LARGEST)
    divisor = np.where(scales == 0, np.float32(1), scales)[..., None]
    data = np.rint(blocks / divisor) + ZERO
    return Blocks(data.astype(np.uint8), scales.astype(np.float32), cols)


@dataclass(frozen=True, slots=True)
class Rows:
    """A matrix as int8 `[rows, cols]` with a float32 scale a row: value = data * scale."""

    data: NDArray[np.int8]
    scales: Floats


def quantize_rows(values: Floats) -> Rows:
    """Symmetric rounding to 8 bits, largest magnitude of a row at 127."""
    scales = np.abs(values).max(axis=1) / np.float32(LARGEST)
    divisor = np.where(scales == 0, np.float32(1), scales)[:, None]
    return Rows(np.rint(values / divisor).astype(np.int8), scales.astype(np.float32))
