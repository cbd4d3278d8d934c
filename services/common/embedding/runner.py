"""Texts to vectors on ONNX Runtime, one thread a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from services.common.embedding.files import GRAPH_FILE, LEFT, RIGHT, SPM_FILE, read_embedder
from services.common.embedding.spm import build_tokenizer, piece_ids, read_spm

_BEGIN, _END = 1, 2
# Its own default of all cores costs 90 times as much for one sentence here.
_THREADS = 1


@dataclass(frozen=True, slots=True)
class Vector:
    """One text's vector.

    Attributes:
        values: 512 numbers, of unit length.
        unknown_share: Share of the text's pieces that the model does not know, 0–1.
        pieces: Ids of the text's pieces, for features that need no second tokenizer.
    """

    values: NDArray[np.float32]
    unknown_share: float
    pieces: tuple[int, ...] = ()


class TextEmbedder(Protocol):
    """What makes vectors of texts; `Embedder` is one."""

    model_id: str

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text."""


class Embedder:
    """Safe to call from several threads."""

    def __init__(self, folder: Path, model_id: str) -> None:
        """Opens the files of `folder`; use `load`."""
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = _THREADS
        self._session = ort.InferenceSession(
            folder / GRAPH_FILE, options, providers=["CPUExecutionProvider"]
        )
        spm = read_spm((folder / SPM_FILE).read_bytes())
        self._tokenizer = build_tokenizer(spm)
        self._unknown_id = spm.unknown_id
        self.model_id = model_id

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Opens what `build_embedder` made; takes 0.3 s.

        Raises:
            ModelNotBuilt: There is none.
            CorruptModel: It is damaged.
        """
        return cls(folder, read_embedder(folder))

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of texts, none of them empty.

        One after the other: the 8-bit product rounds by kernels that depend on how many rows
        there are, so in one call a text's vector would depend on its company (by up to 0.002,
        measured), and on one thread a joint call is hardly faster.
        """
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Vector:
        pieces = piece_ids(self._tokenizer, self._unknown_id, text)
        framed = np.array([_BEGIN, *pieces, _END], np.int64)
        lengths = np.array([len(framed)], np.int64)
        (vectors,) = self._session.run(
            None,
            {
                "ids": framed,
                "windows": _windows(lengths),
                "member": _member(lengths),
                "lengths": lengths.astype(np.float32),
            },
        )
        unknown = pieces.count(self._unknown_id) / max(1, len(pieces))
        return Vector(vectors[0], unknown, tuple(pieces))


def _windows(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions around each token, those outside its own text replaced by the zero row."""
    ends = np.cumsum(lengths)
    total = int(ends[-1])
    around = np.arange(total)[:, None] + np.arange(-LEFT, RIGHT + 1)
    first = np.repeat(ends - lengths, lengths)[:, None]
    last = np.repeat(ends, lengths)[:, None]
    windows: NDArray[np.int64] = np.where((around >= first) & (around < last), around, total)
    return windows


def _member(lengths: NDArray[np.int64]) -> NDArray[np.float32]:
    texts = np.repeat(np.arange(len(lengths)), lengths)
    member: NDArray[np.float32] = np.equal.outer(np.arange(len(lengths)), texts).astype(np.float32)
    return member
