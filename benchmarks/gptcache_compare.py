"""GPTCache's similarity evaluations on our embedder's vectors, over labelled pairs.

    uv pip install --target /tmp/gptcache --no-deps gptcache cachetools requests
    PYTHONPATH=/tmp/gptcache python -m benchmarks.gptcache_compare --data FILE

GPTCache is no dependency of ours: the package is looked for and its absence said.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.cache_data import Embedded, embed_pairs, read_pairs
from evaluation.cache_score import measure, threshold_at
from services.common.embedding.files import DEFAULT_DIR
from services.common.embedding.runner import Embedder

_RECALLS = (0.1, 0.2, 0.3, 0.4)


def main() -> int:
    """Prints wrong-hit share at some recalls for each evaluation that runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    file: Path = parser.parse_args().data
    try:
        package = importlib.import_module("gptcache.similarity_evaluation")
    except ImportError as error:
        sys.stderr.write(f"GPTCache does not import: {error}\n")
        return 1
    data = embed_pairs(read_pairs(file), Embedder.load(DEFAULT_DIR))
    for name, score in _evaluations(package).items():
        scores = np.array([score(data, row) for row in range(len(data.pairs))])
        shares = [_wrong_at(scores, data, recall) for recall in _RECALLS]
        print(name, *(f"{r:.0%}: {share:.3f}" for r, share in zip(_RECALLS, shares, strict=True)))
    return 0


def _evaluations(package: Any) -> dict[str, Callable[[Embedded, int], float]]:
    distance, norm = package.SearchDistanceEvaluation(), package.NumpyNormEvaluation()

    def by_distance(data: Embedded, row: int) -> float:
        # As its vector stores give it: squared Euclidean distance, at most 4 for unit vectors.
        gap = float(((data.a[row] - data.b[row]) ** 2).sum())
        return float(distance.evaluation({}, {"search_result": (gap, row)}))

    def by_norm(data: Embedded, row: int) -> float:
        pair = data.pairs[row]
        one = {"question": pair.a, "embedding": data.a[row]}
        other = {"question": pair.b, "embedding": data.b[row]}
        return float(norm.evaluation(one, other))

    return {"SearchDistanceEvaluation": by_distance, "NumpyNormEvaluation": by_norm}


def _wrong_at(scores: Any, data: Embedded, recall: float) -> float:
    everything = np.ones(len(scores), bool)
    at = threshold_at(scores, everything, data.same, recall)
    return measure(scores >= at, data.same, at).wrong_hit_share


if __name__ == "__main__":
    sys.exit(main())
