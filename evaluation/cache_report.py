"""What `tandem evaluate cache` reports: shipped, each guard's effect, and a fitted verifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluation.cache_data import Embedded
from evaluation.cache_score import Flags, Point, curve, measure
from evaluation.cache_verifier import prepare, word_vectors
from services.common.embedding.runner import Embedder
from services.common.similarity.guards import GUARDS
from services.common.similarity.settings import Similarity
from services.common.similarity.verifier import Verifier
from services.common.similarity.words import words_of

COSINES: Final = (0.80, 0.85, 0.90, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99)
_FITTED_POINTS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
_GUARD_THRESHOLD: Final = 0.90


@dataclass(frozen=True, slots=True)
class CacheReport:
    """Figures on one file.

    Attributes:
        shipped: With the shipped settings.
        guards: One guard alone, and all of them, at cosine 0.90; `none` is cosine alone.
        curve: Points by way of choosing: `cosine`, `guarded`, `fitted`.
    """

    pairs: int
    shipped: Point
    fitted: Point | None
    guards: dict[str, Point]
    curve: list[tuple[str, Point]]


def report(data: Embedded, embedder: Embedder, verifier: Verifier | None) -> CacheReport:
    """Measures the shipped settings on `data`, and `verifier` where there is one."""
    shipped, same, cosine = Similarity(), data.same, data.cosine
    alone = _guard_flags(data)
    known = ~data.unknown & _short(data, shipped.max_chars)
    guarded = known & ~np.any([alone[name] for name in shipped.guards], axis=0)
    everything = np.ones(len(same), bool)
    points = [("cosine", point) for point in curve(cosine, everything, same, COSINES)]
    points += [("guarded", point) for point in curve(cosine, guarded, same, COSINES)]
    fitted = None
    if verifier is not None:
        fitted, more = _fitted(data, embedder, verifier)
        points += [("fitted", point) for point in more]
    near = cosine >= _GUARD_THRESHOLD
    guards = {"none": measure(near, same, _GUARD_THRESHOLD)}
    guards["unknown"] = measure(near & ~data.unknown, same, _GUARD_THRESHOLD)
    guards |= {n: measure(near & ~flags, same, _GUARD_THRESHOLD) for n, flags in alone.items()}
    guards["all"] = measure(near & guarded, same, _GUARD_THRESHOLD)
    at_shipped = measure((cosine >= shipped.threshold) & guarded, same, shipped.threshold)
    return CacheReport(len(same), at_shipped, fitted, guards, points)


def _guard_flags(data: Embedded) -> dict[str, Flags]:
    """[pairs] for each guard: True where it forbids."""
    flags = {name: np.zeros(len(data.pairs), bool) for name in GUARDS}
    # What lies below every threshold needs no guard.
    for row in np.flatnonzero(data.cosine >= min(COSINES)):
        a, b = words_of(data.pairs[row].a), words_of(data.pairs[row].b)
        for name, guard in GUARDS.items():
            flags[name][row] = a.text != b.text and guard(a, b)
    return flags


def _short(data: Embedded, max_chars: int) -> Flags:
    return np.array([max(len(pair.a), len(pair.b)) <= max_chars for pair in data.pairs])


def _fitted(data: Embedded, embedder: Embedder, verifier: Verifier) -> tuple[Point, list[Point]]:
    ready = prepare(data, verifier.corpus, word_vectors(embedder))
    scores = verifier.log_odds(ready.figures, ready.a, ready.b)
    at = verifier.threshold
    fitted = measure((scores >= at) & ready.allowed, ready.same, at)
    # Other thresholds are quantiles of the scores here: a picture, nothing is chosen by it.
    found = np.sort(scores[ready.allowed & ready.same])[::-1]
    wanted = [int(share * ready.same.sum()) for share in _FITTED_POINTS]
    places = [float(found[n]) for n in wanted if n < len(found)]
    return fitted, curve(scores, ready.allowed, ready.same, places)
