"""Fits the two members and their calibration on training rows alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression

from evaluation.complexity.prepare import Floats, Prompts, learn_reader, scaled, weighted
from evaluation.routing_score import NoGain, curve_of
from services.common.complexity.members import VECTOR_SHARPNESS

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Sizes and strengths; found by cross-validation, the same for every data set.

    Attributes:
        bits: The grams' table has 2^bits buckets.
        landmarks: Rows that the kernel machine keeps, at most.
        kernel_rows: Rows that it learns from, at most: time grows with their cube.
        ridge: Its regularization.
        trees, leaf: Trees of the forest, and rows in a leaf at least.
        vector_axes: Main directions of the vectors that the forest sees.
    """

    bits: int = 18
    landmarks: int = 2_000
    kernel_rows: int = 6_000
    ridge: float = 25.0
    trees: int = 150
    leaf: int = 12
    vector_axes: int = 60
    seed: int = 0


SMALL = Recipe(bits=13, landmarks=240, ridge=3.0, trees=60, leaf=3, vector_axes=16)
_FOLDS = 3
# Weights of the forest beside the kernel's 1, of which the best is taken.
_FOREST_WEIGHTS = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model before it is written.

    Attributes:
        parts: The header's `kernel`, `forest`, `slope` and `offset`.
    """

    arrays: Arrays
    parts: dict[str, Any]


def fit(prompts: Prompts, recipe: Recipe, groups: NDArray[np.int64] | None = None) -> Fitted:
    """Fits on all rows; blend and calibration come from predictions out of fold.

    Args:
        groups: Rows of one group (made from one template) stay in one fold; None: each alone.
    """
    own = np.arange(len(prompts.gains)) if groups is None else groups
    kernel, forest = _out_of_fold(prompts, recipe, own)
    means = kernel.mean(), forest.mean()
    spreads = max(float(kernel.std()), 1e-9), max(float(forest.std()), 1e-9)
    scores = [(kernel - means[0]) / spreads[0], (forest - means[1]) / spreads[1]]
    weight = _best_weight(scores[0], scores[1], prompts)
    slope, offset = _calibrate(scores[0] + weight * scores[1], prompts.needed)
    arrays, _ = _members(prompts, recipe, None)
    return Fitted(
        arrays,
        {
            "kernel": {"mean": float(means[0]), "spread": spreads[0], "weight": 1.0},
            "forest": {"mean": float(means[1]), "spread": spreads[1], "weight": weight},
            "slope": slope,
            "offset": offset,
        },
    )


def _out_of_fold(
    prompts: Prompts, recipe: Recipe, groups: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Each row's outputs by members that did not see its group."""
    count = len(prompts.gains)
    order = np.random.default_rng(recipe.seed).permutation(int(groups.max()) + 1)
    fold = order[groups] % _FOLDS
    kernel, forest = np.zeros(count, np.float32), np.zeros(count, np.float32)
    for number in range(_FOLDS):
        test = np.flatnonzero(fold == number)
        train = prompts.part(np.flatnonzero(fold != number))
        _, outputs = _members(train, recipe, prompts.part(test))
        kernel[test], forest[test] = outputs
    return kernel, forest


def _best_weight(kernel: Floats, forest: Floats, prompts: Prompts) -> float:
    def area(weight: float) -> float:
        try:
            return curve_of(kernel + weight * forest, prompts.gains).apgr
        except NoGain:
            return 0.0

    return max(_FOREST_WEIGHTS, key=area)


def _calibrate(scores: Floats, needed: NDArray[np.bool_]) -> tuple[float, float]:
    """Platt's logistic; where all rows are alike their share is all that can be said."""
    if needed.all() or not needed.any():
        return 0.0, 4.0 if needed.all() else -4.0
    found = LogisticRegression(C=100.0).fit(scores[:, None], needed)
    return float(found.coef_[0, 0]), float(found.intercept_[0])


def _members(
    prompts: Prompts, recipe: Recipe, test: Prompts | None
) -> tuple[Arrays, tuple[Floats, Floats]]:
    """Arrays of both members, and their outputs on `test`."""
    reader = learn_reader(prompts)
    grams, shapes = weighted(prompts, reader), scaled(prompts, reader)
    arrays: Arrays = {"idf": reader.idf, "knots": reader.knots, "normal": reader.normal}
    kernel = _fit_kernel(prompts, grams, shapes, recipe)
    forest, axes = _fit_forest(prompts, recipe)
    outputs = (np.zeros(0, np.float32), np.zeros(0, np.float32))
    if test is not None:
        test_grams = weighted(test, reader)
        own = scaled(test, reader)
        near = _kernel(test.vectors, own, kernel["landmark_vectors"], kernel["landmark_shapes"])
        one = near @ kernel["alphas"] + own @ kernel["shape_weights"]
        one += test_grams @ kernel["gram_weights"]
        right = forest.predict(_forest_rows(test, axes["vector_mean"], axes["vector_axes"]))
        outputs = (one.astype(np.float32), (right[:, 1] - right[:, 0]).astype(np.float32))
    return {**arrays, **kernel, **axes, **_nodes(forest)}, outputs


def _kernel(vectors: Floats, shapes: Floats, others: Floats, other_shapes: Floats) -> Floats:
    near = np.exp(2 * VECTOR_SHARPNESS * (vectors @ others.T - 1))
    squares = (shapes**2).sum(1)[:, None] + (other_shapes**2).sum(1)[None]
    alike = np.exp((squares - 2 * shapes @ other_shapes.T) / (-2 * shapes.shape[1]))
    both: Floats = near + alike + near * alike
    return both


def _fit_kernel(
    prompts: Prompts, grams: sparse.csr_matrix, shapes: Floats, recipe: Recipe
) -> Arrays:
    """Ridge in the dual with the landmarks' kernel and both linear ones added."""
    rng = np.random.default_rng(recipe.seed)
    count = len(prompts.gains)
    rows = rng.permutation(count)[: recipe.kernel_rows]
    marks = rows[: recipe.landmarks]
    vectors, own = prompts.vectors[rows], shapes[rows]
    cross = _kernel(vectors, own, prompts.vectors[marks], shapes[marks])
    among = cross[: len(marks)].astype(np.float64)
    among[np.diag_indices(len(marks))] += 1e-4 * len(marks) ** 0.5
    half = linalg.solve_triangular(
        linalg.cholesky(among, lower=True), cross.T.astype(np.float64), lower=True
    ).astype(np.float32)
    linear = grams[rows]
    gram = half.T @ half + (linear @ linear.T).toarray() + own @ own.T / own.shape[1]
    gram[np.diag_indices(len(rows))] += recipe.ridge
    mean = prompts.gains[rows].mean()
    dual = linalg.cho_solve(
        linalg.cho_factor(gram, overwrite_a=True, check_finite=False), prompts.gains[rows] - mean
    )
    alphas = linalg.solve(among, cross.T.astype(np.float64) @ dual, assume_a="pos")
    return {
        "landmark_vectors": prompts.vectors[marks].astype(np.float16),
        "landmark_shapes": shapes[marks],
        "alphas": alphas.astype(np.float32),
        "gram_weights": np.asarray(linear.T @ dual).ravel().astype(np.float32),
        "shape_weights": (own.T @ dual / own.shape[1]).astype(np.float32),
    }


def _fit_forest(prompts: Prompts, recipe: Recipe) -> tuple[ExtraTreesRegressor, Arrays]:
    few = min(len(prompts.gains) - 1, prompts.vectors.shape[1])
    pca = PCA(min(recipe.vector_axes, few), random_state=recipe.seed).fit(prompts.vectors)
    mean, axes = pca.mean_.astype(np.float32), pca.components_.T.astype(np.float32)
    forest = ExtraTreesRegressor(
        recipe.trees,
        min_samples_leaf=recipe.leaf,
        max_features=0.5,
        n_jobs=-1,
        random_state=recipe.seed,
    )
    # Both models' answers are learned together and the difference taken: a split that tells
    # hard from easy helps even where it does not tell gain from none.
    forest.fit(_forest_rows(prompts, mean, axes), prompts.right)
    return forest, {"vector_mean": mean, "vector_axes": axes}


def _forest_rows(prompts: Prompts, mean: Floats, axes: Floats) -> Floats:
    return np.hstack([(prompts.vectors - mean) @ axes, prompts.shapes]).astype(np.float32)


def _nodes(forest: ExtraTreesRegressor) -> Arrays:
    """All trees in one table; see `Forest`."""
    trees = [each.tree_ for each in forest.estimators_]
    starts = np.cumsum([0, *(tree.node_count for tree in trees)])
    tables: dict[str, list[NDArray[Any]]] = {
        name: [] for name in ("feature", "cut", "left", "right", "value")
    }
    for start, tree in zip(starts[:-1], trees, strict=True):
        leaf = tree.children_left < 0
        own = np.arange(tree.node_count) + start
        tables["feature"].append(np.where(leaf, 0, tree.feature).astype(np.int16))
        # sklearn compares 32-bit values with 64-bit cuts: rounding down keeps its verdicts.
        cut = tree.threshold.astype(np.float32)
        high = cut.astype(np.float64) > tree.threshold
        tables["cut"].append(np.where(high, np.nextafter(cut, np.float32(-np.inf)), cut))
        tables["left"].append(np.where(leaf, own, tree.children_left + start).astype(np.int32))
        tables["right"].append(np.where(leaf, own, tree.children_right + start).astype(np.int32))
        tables["value"].append((tree.value[:, 1, 0] - tree.value[:, 0, 0]).astype(np.float16))
    return {
        **{name: np.concatenate(parts) for name, parts in tables.items()},
        "roots": starts[:-1].astype(np.int32),
        "depth": np.array(max(tree.max_depth for tree in trees)),
    }
