"""A trained complexity model: a JSON header and arrays, bound to its embedder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.common.complexity.members import Arrays, Forest, Kernel, Reader
from services.common.embedding.runner import Vector
from services.common.errors import ConfigInvalid
from services.common.weights.files import sha256_of

HEADER_FILE: Final = "complexity.json"
ARRAYS_FILE: Final = "complexity.npz"
FORMAT: Final = 1


class Member(BaseModel):
    """How one member's output enters the sum: weight × (output − mean) ÷ spread."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: float
    spread: float = Field(gt=0)
    weight: float = Field(ge=0)


class Header(BaseModel):
    """What a model is bound to, and how it was calibrated.

    P(strong model needed) = 1 ÷ (1 + exp(−(slope × score + offset))).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int
    name: str
    embedder: str
    """Model id of the embedder; another one's vectors mean something else."""
    rows: int = Field(ge=1)
    rows_sha256: str
    arrays_sha256: str
    kernel: Member
    forest: Member
    slope: float
    offset: float


class ComplexityModel:
    """Says how likely a prompt needs the strong model. Safe to use from several threads."""

    def __init__(self, header: Header, arrays: Arrays) -> None:
        self.header = header
        self._reader = Reader.of(arrays)
        self._kernel, self._forest = Kernel.of(arrays), Forest.of(arrays)

    @classmethod
    def load(cls, folder: Path, embedder: str) -> Self:
        """Opens what `tandem train complexity` wrote.

        Raises:
            ConfigInvalid: There is none, it is damaged, or it is bound to another embedder.
        """
        path = folder / HEADER_FILE
        try:
            header = Header.model_validate_json(path.read_bytes())
        except OSError as error:
            raise ConfigInvalid(f"{path}: cannot be read") from error
        except ValidationError as error:
            raise ConfigInvalid(f"{path}: is no header of a complexity model") from error
        if header.format != FORMAT:
            raise ConfigInvalid(f"{path}: format {header.format}; this version reads {FORMAT}")
        if header.embedder != embedder:
            raise ConfigInvalid(
                f"{path}: trained on vectors of {header.embedder}, but the embedder here is "
                f"{embedder}; train it anew with `tandem train complexity`"
            )
        return cls(header, _arrays(folder / ARRAYS_FILE, header))

    def score(self, text: str, vector: Vector) -> float:
        """Ranks prompts: the higher, the more the strong model adds."""
        seen = self._reader.read(text, vector)
        parts = (
            (self.header.kernel, self._kernel.score(seen)),
            (self.header.forest, self._forest.score(seen)),
        )
        return sum(part.weight * (value - part.mean) / part.spread for part, value in parts)

    def probability(self, text: str, vector: Vector) -> float:
        """Calibrated P(strong model needed), 0–1."""
        logit = self.header.slope * self.score(text, vector) + self.header.offset
        return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, logit))))


def write_model(folder: Path, header: Mapping[str, object], arrays: Arrays) -> None:
    """Writes both files; the header last, so that a folder with one is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / HEADER_FILE).unlink(missing_ok=True)
    np.savez_compressed(folder / ARRAYS_FILE, allow_pickle=False, **arrays)
    digest = sha256_of(folder / ARRAYS_FILE)
    whole = Header.model_validate({**header, "format": FORMAT, "arrays_sha256": digest})
    (folder / HEADER_FILE).write_text(whole.model_dump_json(indent=2) + "\n")


def _arrays(path: Path, header: Header) -> dict[str, NDArray[np.generic]]:
    """Small floats are kept in halves on disk and computed with in full."""
    try:
        if sha256_of(path) != header.arrays_sha256:
            raise ConfigInvalid(f"{path}: is not the file that the header names (damaged?)")
        with np.load(path, allow_pickle=False) as stored:
            read = {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        raise ConfigInvalid(f"{path}: cannot be read") from error
    return {
        name: array.astype(np.float32) if array.dtype == np.float16 else array
        for name, array in read.items()
    }
