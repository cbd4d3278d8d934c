"""A verifier: how sure it is that two questions of one task share an answer. Numpy only.

Trees over the pair's figures and a small network over vectors and figures, their log-odds
averaged. Weights are of one task and one embedder; on another they are worse than cosine.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from services.common.errors import ConfigInvalid
from services.common.similarity.features import (
    NAMES,
    Corpus,
    Floats,
    WordVectors,
    pair_features,
    text_vector,
)

HEADER_FILE: Final = "verifier.json"
ARRAYS_FILE: Final = "verifier.npz"
# Raise when a figure changes its meaning: files of another format are refused.
FORMAT: Final = 1
_ROWS = 512
_CLIP = 6.0


@dataclass(frozen=True, slots=True)
class Trees:
    """Boosted trees, padded to one size; a leaf points at itself.

    Attributes:
        feature, bound, left, right, value: [trees, nodes]; `x <= bound` goes left.
        base: Log-odds before the first tree.
    """

    feature: NDArray[np.int32]
    bound: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]
    depth: int
    base: float

    def log_odds(self, figures: Floats) -> NDArray[np.float64]:
        """[rows] from [rows, figures]."""
        out = [self._some(figures[at : at + _ROWS]) for at in range(0, len(figures), _ROWS)]
        return np.concatenate(out) if out else np.zeros(0)

    def _some(self, figures: Floats) -> NDArray[np.float64]:
        rows, trees = np.arange(len(figures))[:, None], np.arange(len(self.feature))[None]
        node = np.zeros((len(figures), len(self.feature)), np.int32)
        for _ in range(self.depth):
            lower = figures[rows, self.feature[trees, node]] <= self.bound[trees, node]
            node = np.where(lower, self.left[trees, node], self.right[trees, node])
        total: NDArray[np.float64] = self.value[trees, node].sum(1) + self.base
        return total


@dataclass(frozen=True, slots=True)
class Network:
    """One hidden layer of rectified units over standardized inputs."""

    mean: Floats
    scale: Floats
    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: float

    def log_odds(self, inputs: Floats) -> NDArray[np.float64]:
        """[rows] from [rows, inputs]."""
        plain = np.clip((inputs - self.mean) / self.scale, -_CLIP, _CLIP)
        hidden = np.maximum(plain @ self.hidden + self.hidden_bias, 0.0)
        return np.asarray(hidden @ self.out + self.out_bias, np.float64)


@dataclass(frozen=True, slots=True)
class Verifier:
    """A fitted verifier.

    Attributes:
        threshold: Log-odds from which a pair counts as the same question.
        trained_pairs: Size of what it was fitted on.
    """

    task: str
    embedder_id: str
    threshold: float
    trained_pairs: int
    corpus: Corpus
    trees: Trees
    network: Network

    def log_odds(self, figures: Floats, a: Floats, b: Floats) -> NDArray[np.float64]:
        """[rows] from the figures of the pairs and their texts' `text_vector`s."""
        inputs = network_inputs(figures, a, b)
        return (self.trees.log_odds(figures) + self.network.log_odds(inputs)) / 2

    def accepts(self, a: str, b: str, vectors: tuple[Floats, Floats], words: WordVectors) -> bool:
        """Whether one pair of texts passes; `vectors` are those of `a` and `b`."""
        one, other = vectors
        figures = pair_features(a, b, float(one @ other), self.corpus, words)
        left = text_vector(a, one, self.corpus, words)
        right = text_vector(b, other, self.corpus, words)
        return bool(self.log_odds(figures[None], left[None], right[None])[0] >= self.threshold)

    def save(self, folder: Path) -> None:
        """Writes both files."""
        folder.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {
            **{f"trees_{name}": getattr(self.trees, name) for name in _TREE_ARRAYS},
            **{f"network_{name}": getattr(self.network, name) for name in _NETWORK_ARRAYS},
        }
        np.savez_compressed(folder / ARRAYS_FILE, **arrays)
        header = {
            "format": FORMAT,
            "task": self.task,
            "embedder_id": self.embedder_id,
            "threshold": self.threshold,
            "trained_pairs": self.trained_pairs,
            "features": list(NAMES),
            "depth": self.trees.depth,
            "base": self.trees.base,
            "out_bias": self.network.out_bias,
            "unseen": self.corpus.unseen,
            "idf": {unit: round(weight, 4) for unit, weight in self.corpus.idf.items()},
            "arrays_sha256": hashlib.sha256((folder / ARRAYS_FILE).read_bytes()).hexdigest(),
        }
        (folder / HEADER_FILE).write_text(json.dumps(header, ensure_ascii=False), encoding="utf-8")


_TREE_ARRAYS: Final = ("feature", "bound", "left", "right", "value")
_NETWORK_ARRAYS: Final = ("mean", "scale", "hidden", "hidden_bias", "out")


def network_inputs(figures: Floats, a: Floats, b: Floats) -> Floats:
    """[rows, 2 x 1024 + figures]: |a - b|, a · b and the figures; symmetric."""
    joined: Floats = np.concatenate([np.abs(a - b), a * b, figures], axis=1).astype(np.float32)
    return joined


def load_verifier(folder: Path, embedder_id: str) -> Verifier:
    """Reads a verifier for the embedder in use.

    Raises:
        ConfigInvalid: Absent, damaged, of another format or for another embedder.
    """
    try:
        header = json.loads((folder / HEADER_FILE).read_text(encoding="utf-8"))
        data = (folder / ARRAYS_FILE).read_bytes()
        _check(folder, header, data, embedder_id)
        with np.load(folder / ARRAYS_FILE, allow_pickle=False) as arrays:
            return _read(header, arrays)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise ConfigInvalid(f"{folder}: no readable cache verifier there") from error


def _check(folder: Path, header: dict[str, Any], data: bytes, embedder_id: str) -> None:
    if header["format"] != FORMAT or header["features"] != list(NAMES):
        raise ConfigInvalid(f"{folder}: of another version; run tandem train cache-verifier again")
    if header["embedder_id"] != embedder_id:
        raise ConfigInvalid(
            f"{folder}: fitted for embedder {header['embedder_id']}, in use is {embedder_id}"
        )
    if hashlib.sha256(data).hexdigest() != header["arrays_sha256"]:
        raise ConfigInvalid(f"{folder}: {ARRAYS_FILE} is not the one that {HEADER_FILE} describes")


def _read(header: dict[str, Any], arrays: Any) -> Verifier:
    trees = {name: arrays[f"trees_{name}"] for name in _TREE_ARRAYS}
    network = {name: arrays[f"network_{name}"] for name in _NETWORK_ARRAYS}
    return Verifier(
        task=str(header["task"]),
        embedder_id=str(header["embedder_id"]),
        threshold=float(header["threshold"]),
        trained_pairs=int(header["trained_pairs"]),
        corpus=Corpus(dict(header["idf"]), float(header["unseen"])),
        trees=Trees(**trees, depth=int(header["depth"]), base=float(header["base"])),
        network=Network(**network, out_bias=float(header["out_bias"])),
    )


def stack_vectors(vectors: Sequence[Any]) -> Floats:
    """[texts, 512] from the embedder's vectors."""
    return np.stack([vector.values for vector in vectors])
