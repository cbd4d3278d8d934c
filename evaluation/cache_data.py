"""Labelled pairs of questions for the cache: read, checked, embedded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.common.embedding.runner import Embedder
from services.common.similarity.features import Floats

_GZIP_MAGIC = b"\x1f\x8b"
_BATCH = 16
_MAX_TEXT_CHARS = 10_000


class BadPairs(Exception):
    """The file cannot be used; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts and whether one answer serves both."""

    a: str
    b: str
    same: bool


@dataclass(frozen=True, slots=True)
class Embedded:
    """Pairs with the vectors of their texts.

    Attributes:
        a, b: [pairs, 512], of unit length.
        unknown: [pairs], True where either text has pieces that the embedder does not know.
    """

    pairs: tuple[Pair, ...]
    a: Floats
    b: Floats
    unknown: NDArray[np.bool_]

    @property
    def same(self) -> NDArray[np.bool_]:
        """[pairs] labels."""
        return np.array([pair.same for pair in self.pairs], bool)

    @property
    def cosine(self) -> Floats:
        """[pairs]."""
        product: Floats = (self.a * self.b).sum(1)
        return product

    def take(self, rows: NDArray[np.intp]) -> Embedded:
        """A part of the pairs."""
        return Embedded(
            tuple(self.pairs[row] for row in rows), self.a[rows], self.b[rows], self.unknown[rows]
        )


def read_pairs(path: Path) -> list[Pair]:
    """Reads JSON lines with `a`, `b` and `same`, gzipped or not; other fields are ignored.

    Raises:
        BadPairs: Unreadable, or a line is not such a pair.
    """
    pairs = [_pair(path, number, line) for number, line in _lines(path)]
    if not pairs:
        raise BadPairs(f"{path}: holds no pair")
    return pairs


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data.startswith(_GZIP_MAGIC) else data).decode("utf-8-sig")
    except (OSError, EOFError, ValueError) as error:
        raise BadPairs(f"{path}: cannot be read: {type(error).__name__}") from error
    # Only the newline ends a record: texts may hold other line separators.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line


def _pair(path: Path, number: int, line: str) -> Pair:
    where = f"{path}:{number}"
    try:
        record: Any = json.loads(line)
    except ValueError as error:
        raise BadPairs(f"{where}: not JSON") from error
    if not isinstance(record, dict):
        raise BadPairs(f"{where}: must be an object with a, b and same")
    for name in ("a", "b"):
        text = record.get(name)
        if not isinstance(text, str) or not text.strip() or len(text) > _MAX_TEXT_CHARS:
            raise BadPairs(f"{where}: {name}: must be a text of 1 to {_MAX_TEXT_CHARS} characters")
    same = record.get("same")
    if not isinstance(same, bool) and same not in (0, 1):
        raise BadPairs(f"{where}: same: must be true or false")
    return Pair(record["a"], record["b"], bool(same))


def embed_pairs(pairs: Sequence[Pair], embedder: Embedder) -> Embedded:
    """Embeds each distinct text once; about 1 ms a short text."""
    # Texts of like length together: a batch costs what its longest members cost.
    texts = sorted({text for pair in pairs for text in (pair.a, pair.b)}, key=len)
    place = {text: row for row, text in enumerate(texts)}
    vectors = [
        vector
        for start in range(0, len(texts), _BATCH)
        for vector in embedder.embed(texts[start : start + _BATCH])
    ]
    values = np.stack([vector.values for vector in vectors])
    unknown = np.array([vector.unknown_share > 0 for vector in vectors])
    left = np.array([place[pair.a] for pair in pairs])
    right = np.array([place[pair.b] for pair in pairs])
    return Embedded(tuple(pairs), values[left], values[right], unknown[left] | unknown[right])
