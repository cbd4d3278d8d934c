"""Writes an ONNX graph whose large tensors lie in one file beside it."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

MODEL_FILE = "model.onnx"
DATA_FILE = "model.onnx.data"
_ALIGN = 4096  # a page, so that the runtime can map tensors
_INLINE_BYTES = 8192

_Array = NDArray[Any]


class TensorStore:
    """Collects initializers; those above 8 KB go to `model.onnx.data` at once.

    Streaming keeps the builder's memory at one tensor instead of the model.
    """

    def __init__(self, folder: Path) -> None:
        """Opens the data file in `folder`, which must exist."""
        self._file = (folder / DATA_FILE).open("wb")
        self.initializers: list[TensorProto] = []

    def __enter__(self) -> Self:
        """Enters a block at whose end the data file is closed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """Closes the data file."""
        self._file.close()

    def add(self, name: str, array: _Array) -> str:
        """Adds an initializer and gives back its name."""
        array = np.ascontiguousarray(array)
        if array.nbytes <= _INLINE_BYTES:
            self.initializers.append(onnx.numpy_helper.from_array(array, name))
            return name
        self._file.write(b"\0" * (-self._file.tell() % _ALIGN))
        offset = self._file.tell()
        self._file.write(array.data)
        self._declare(name, array.shape, array.dtype, offset, array.nbytes)
        return name

    def add_view(self, name: str, of: str, shape: tuple[int, ...]) -> str:
        """Adds an initializer over the bytes of another, stored once, shaped anew."""
        source = next(t for t in self.initializers if t.name == of)
        view = TensorProto()
        view.CopyFrom(source)
        view.name = name
        del view.dims[:]
        view.dims.extend(shape)
        self.initializers.append(view)
        return name

    def _declare(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int, size: int
    ) -> None:
        tensor = TensorProto(
            name=name,
            dims=shape,
            data_type=helper.np_dtype_to_tensor_dtype(dtype),
            data_location=TensorProto.EXTERNAL,
        )
        place = {"location": DATA_FILE, "offset": str(offset), "length": str(size)}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)
        self.initializers.append(tensor)
