"""Fits a cache verifier on labelled pairs. Training only: the router reads what this writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from evaluation.cache_data import BadPairs, Embedded
from evaluation.cache_score import threshold_at
from services.common.embedding.runner import Embedder
from services.common.similarity.features import (
    Corpus,
    Floats,
    WordVectors,
    pair_features,
    text_vector,
)
from services.common.similarity.guards import sharply_forbidding
from services.common.similarity.verifier import (
    Network,
    Trees,
    Verifier,
    network_inputs,
    stack_vectors,
)

# Found of the true pairs of G out of fold, so that unseen rows keep at least 0.30.
TARGET_RECALL: Final = 0.33
_FOLDS = 3
# Hidden units, learning rate, batch: unlike networks err unlike, and their mean errs less.
_NETWORKS: Final = ((128, 5e-4, 128), (128, 5e-4, 128), (64, 1e-3, 256), (64, 1e-3, 256))
_FEWEST = 40


@dataclass(frozen=True, slots=True)
class Prepared:
    """Pairs in the form that models take.

    Attributes:
        allowed: No sharp guard and no unknown piece forbids the pair.
    """

    figures: Floats
    a: Floats
    b: Floats
    same: NDArray[np.bool_]
    allowed: NDArray[np.bool_]


def word_vectors(embedder: Embedder) -> WordVectors:
    """Vectors of single words by the same embedder."""
    return WordVectors(lambda words: stack_vectors(embedder.embed(words)))


def prepare(data: Embedded, corpus: Corpus, words: WordVectors) -> Prepared:
    """Figures of every pair; 2 to 4 ms a pair."""
    cosines = data.cosine
    figures = [
        pair_features(pair.a, pair.b, float(cosine), corpus, words)
        for pair, cosine in zip(data.pairs, cosines, strict=True)
    ]
    table = np.stack(figures)
    sharp = np.array([sharply_forbidding(pair.a, pair.b) for pair in data.pairs], bool)
    allowed = ~data.unknown & ~sharp
    sides = (
        zip((pair.a for pair in data.pairs), data.a, strict=True),
        zip((pair.b for pair in data.pairs), data.b, strict=True),
    )
    left, right = (
        np.stack([text_vector(text, vector, corpus, words) for text, vector in side])
        for side in sides
    )
    return Prepared(table, left, right, data.same, allowed)


def fit(data: Embedded, task: str, embedder: Embedder) -> Verifier:
    """A verifier whose threshold is chosen out of fold on `data` alone.

    Raises:
        BadPairs: Too few pairs of one kind to fit anything on.
    """
    fewest = min(int(data.same.sum()), int((~data.same).sum()))
    if fewest < _FEWEST:
        raise BadPairs(f"needs at least {_FEWEST} pairs of each kind, has {fewest} of one")
    corpus = Corpus.of(text for pair in data.pairs for text in (pair.a, pair.b))
    ready = prepare(data, corpus, word_vectors(embedder))
    # Several threads spin against each other on matrices this small.
    with threadpool_limits(limits=1):
        scores = _out_of_fold(ready)
        trees, network = _fit_parts(ready, np.arange(len(ready.same)))
    threshold = threshold_at(scores, ready.allowed, ready.same, TARGET_RECALL)
    return Verifier(task, embedder.model_id, threshold, len(data.pairs), corpus, trees, network)


def _out_of_fold(ready: Prepared) -> NDArray[np.float64]:
    scores = np.zeros(len(ready.same))
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    for inside, outside in folds.split(ready.figures, ready.same):
        trees, network = _fit_parts(ready, inside)
        inputs = network_inputs(ready.figures[outside], ready.a[outside], ready.b[outside])
        scores[outside] = (trees.log_odds(ready.figures[outside]) + network.log_odds(inputs)) / 2
    return scores


def _fit_parts(ready: Prepared, rows: NDArray[np.intp]) -> tuple[Trees, Network]:
    figures, same = ready.figures[rows], ready.same[rows]
    inputs = network_inputs(figures, ready.a[rows], ready.b[rows])
    return _fit_trees(figures, same), _fit_network(inputs, same)


def _fit_trees(figures: Floats, same: NDArray[np.bool_]) -> Trees:
    model = HistGradientBoostingClassifier(
        max_iter=300,
        learning_rate=0.05,
        max_leaf_nodes=15,
        min_samples_leaf=min(30, max(5, len(same) // 100)),
        l2_regularization=1.0,
        max_features=0.3,
        early_stopping=False,
        random_state=0,
    ).fit(figures, same)
    return as_arrays([stage[0].nodes for stage in model._predictors], model._baseline_prediction)


def as_arrays(trees: list[Any], base: Any) -> Trees:
    """scikit-learn's node tables as padded arrays; `test_cache_verifier` holds them equal."""
    size = max(len(nodes) for nodes in trees)
    own = np.arange(size, dtype=np.int32)
    shape = (len(trees), size)
    feature, value = np.zeros(shape, np.int32), np.zeros(shape)
    bound, left = np.zeros(shape), np.tile(own, (len(trees), 1))
    right = left.copy()
    for row, nodes in enumerate(trees):
        inner = np.flatnonzero(nodes["is_leaf"] == 0)
        feature[row, inner] = nodes["feature_idx"][inner]
        bound[row, inner] = nodes["num_threshold"][inner]
        left[row, inner], right[row, inner] = nodes["left"][inner], nodes["right"][inner]
        value[row, : len(nodes)] = nodes["value"]
    depth = int(max(nodes["depth"].max() for nodes in trees))
    return Trees(feature, bound, left, right, value, depth, float(np.ravel(base)[0]))


def _fit_network(inputs: Floats, same: NDArray[np.bool_]) -> Network:
    """Several small networks side by side in one layer: the mean of their log-odds."""
    mean, scale = inputs.mean(0), inputs.std(0)
    scale[scale < 1e-6] = 1.0
    plain = np.clip((inputs - mean) / scale, -6.0, 6.0)
    models = [
        MLPClassifier(
            (hidden,),
            alpha=1.0,
            batch_size=min(batch, max(1, len(same) // 4)),
            learning_rate_init=rate,
            early_stopping=True,
            n_iter_no_change=3,
            max_iter=30,
            random_state=seed,
        ).fit(plain, same)
        for seed, (hidden, rate, batch) in enumerate(_NETWORKS)
    ]
    return Network(
        mean=mean,
        scale=scale,
        hidden=np.concatenate([model.coefs_[0] for model in models], 1).astype(np.float32),
        hidden_bias=np.concatenate([model.intercepts_[0] for model in models]).astype(np.float32),
        out=(np.concatenate([model.coefs_[1][:, 0] for model in models]) / len(models)).astype(
            np.float32
        ),
        out_bias=float(np.mean([model.intercepts_[1][0] for model in models])),
    )
