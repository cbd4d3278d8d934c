"""Labelled texts: some to look examples up in, some to be asked."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration import Floats
from evaluation.rows import BadData, read_rows

PER_INTENT = 12
"""Examples of each intent; more make the search slower, and the edge hardly better."""
NEAREST = 3
# Cosines into odds; of the same order as the edge model's own probabilities.
_SHARPNESS = 20.0


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled text."""

    text: str
    intent: str


@dataclass(frozen=True, slots=True)
class Intents:
    """What the file holds.

    Attributes:
        known: At most `PER_INTENT` of each intent, out of the `train` split.
        asked: Drawn from the other splits.
    """

    known: tuple[Example, ...]
    asked: tuple[Example, ...]


def read_intents(path: Path, rows: int, seed: int) -> Intents:
    """JSON lines with `split`, `text` and `intent`.

    Raises:
        BadData: Not readable, a column is missing, or fewer than `rows` rows to ask.
    """
    known: dict[str, list[Example]] = defaultdict(list)
    asked = []
    for row in read_rows(path):
        one = Example(row.get("text", str), row.get("intent", str))
        if row.get("split", str) != "train":
            asked.append(one)
        elif len(known[one.intent]) < PER_INTENT:
            known[one.intent].append(one)
    if len(known) < NEAREST:
        raise BadData(f"{path}: {len(known)} intents in the split `train`; {NEAREST} are needed")
    if len(asked) < rows:
        raise BadData(f"{path}: {len(asked)} rows outside the split `train`; {rows} are asked for")
    order = np.random.default_rng(seed).permutation(len(asked))[:rows]
    return Intents(
        tuple(one for each in known.values() for one in each), tuple(asked[i] for i in order)
    )


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The intents that are nearest by the embedder, with a probability among themselves."""

    intents: tuple[str, ...]
    chances: tuple[float, ...]


def shortlist(
    vector: NDArray[np.float32], vectors: NDArray[np.float32], known: Intents
) -> Shortlist:
    """By the mean cosine of each intent's three nearest examples.

    Args:
        vector: Of the text, unit length.
        vectors: Of `known.known`, one a line.
        known: For their intents.
    """
    near: dict[str, list[float]] = defaultdict(list)
    for cosine, one in zip(vectors @ vector, known.known, strict=True):
        near[one.intent].append(float(cosine))
    mean = {name: float(np.mean(sorted(found)[-3:])) for name, found in near.items()}
    best = sorted(mean, key=lambda name: -mean[name])[:NEAREST]
    chances = np.exp(_SHARPNESS * np.array([mean[name] for name in best]))
    return Shortlist(tuple(best), tuple(float(one) for one in chances / chances.sum()))


def answer(found: Shortlist, model: Floats, weight: float) -> tuple[str, float]:
    """The intent and its score, from both: the embedder's and the edge model's probabilities."""
    mixed = (1.0 - weight) * np.array(found.chances) + weight * model
    return found.intents[int(np.argmax(mixed))], float(mixed.max())
