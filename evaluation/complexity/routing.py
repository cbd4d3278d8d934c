"""Predictive routing measured on labelled rows: our model, baselines, and known traps."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from evaluation.complexity.train import train
from evaluation.routing_data import Row
from evaluation.routing_score import curve_of
from services.common.complexity.model import ComplexityModel
from services.common.embedding.runner import Embedder

Floats = NDArray[np.float64]
# Prompts up to this many tokens count as short; two frame tokens come on top.
SHORT_TOKENS = 128
_WARM = 20
_FAULTY_SHARE = 0.1
_FAULTY_ROWS = 20


@dataclass(frozen=True, slots=True)
class Figures:
    """APGR, CPT(50) and CPT(80) of one way to rank prompts."""

    apgr: float
    cpt50: float
    cpt80: float


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of a whole decision on one core; None without such prompts.

    Attributes:
        short_p50: Of prompts up to 128 tokens.
        long_p95: Of longer ones.
    """

    short_p50: float | None
    long_p95: float | None


@dataclass(frozen=True, slots=True)
class RoutingReport:
    """What `tandem evaluate routing` prints.

    Attributes:
        baselines: By name; ranks of the same test rows.
        traps: What a reader must know of these test rows, each a sentence.
    """

    ours: Figures
    baselines: dict[str, Figures]
    timing: Timing
    traps: tuple[str, ...]
    train_rows: int
    test_rows: int


def evaluate_routing(
    train_rows: Sequence[Row], test_rows: Sequence[Row], embedder: Embedder
) -> RoutingReport:
    """Trains on one part as `tandem train complexity` does, and measures the other.

    Raises:
        NoGain: The strong model is not better on the test rows.
        BadData: There is too little to learn from.
    """
    gains = np.array([row.gain for row in test_rows])
    with tempfile.TemporaryDirectory() as scratch:
        train(train_rows, embedder, Path(scratch), name="evaluated")
        # As the router loads it: what is measured is the shipped path, prompt by prompt.
        model = ComplexityModel.load(Path(scratch), embedder.model_id)
        scores, timing = _rank(model, embedder, test_rows)
    return RoutingReport(
        ours=figures(scores, gains),
        baselines={
            name: figures(ranks, gains) for name, ranks in _baselines(train_rows, test_rows).items()
        },
        timing=timing,
        traps=_traps(test_rows),
        train_rows=len(train_rows),
        test_rows=len(test_rows),
    )


def figures(scores: Floats, gains: NDArray[np.int64]) -> Figures:
    """The three figures of a ranking."""
    curve = curve_of(scores, gains)
    return Figures(curve.apgr, curve.cpt(0.5), curve.cpt(0.8))


def _rank(model: ComplexityModel, embedder: Embedder, rows: Sequence[Row]) -> tuple[Floats, Timing]:
    scores: list[float] = []
    short: list[float] = []
    long: list[float] = []
    for row in rows[:_WARM]:
        model.probability(row.prompt, embedder.embed([row.prompt])[0])
    for row in rows:
        started = time.perf_counter()
        vector = embedder.embed([row.prompt])[0]
        scores.append(model.score(row.prompt, vector))
        spent_ms = (time.perf_counter() - started) * 1000.0
        (short if len(vector.pieces) <= SHORT_TOKENS else long).append(spent_ms)
    return np.array(scores), Timing(
        float(np.median(short)) if short else None,
        float(np.quantile(long, 0.95)) if long else None,
    )


def _baselines(train_rows: Sequence[Row], test_rows: Sequence[Row]) -> dict[str, Floats]:
    found = {"random": np.zeros(len(test_rows)), "tfidf_ridge": _tfidf(train_rows, test_rows)}
    lengths = np.array([len(row.prompt) for row in test_rows], np.float64)
    found["length"] = lengths
    if any(row.subject for row in train_rows) and any(row.subject for row in test_rows):
        found["subject"] = _by_subject(train_rows, test_rows)
    return found


def _tfidf(train_rows: Sequence[Row], test_rows: Sequence[Row]) -> Floats:
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    learned = words.fit_transform([row.prompt for row in train_rows])
    ridge = Ridge(alpha=6.0).fit(learned, [row.gain for row in train_rows])
    ranks: Floats = ridge.predict(words.transform([row.prompt for row in test_rows]))
    return ranks


def _by_subject(train_rows: Sequence[Row], test_rows: Sequence[Row]) -> Floats:
    """Mean gain of the subject in the training rows; the mean of all where it is new."""
    by_subject = defaultdict(list)
    for row in train_rows:
        by_subject[row.subject].append(row.gain)
    overall = sum(row.gain for row in train_rows) / len(train_rows)
    means = {subject: sum(gains) / len(gains) for subject, gains in by_subject.items()}
    return np.array([means.get(row.subject, overall) for row in test_rows])


def _traps(rows: Sequence[Row]) -> tuple[str, ...]:
    """Subjects that distort the figures: faulty answers, or a large part of the whole gain."""
    by_subject: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.subject:
            by_subject[row.subject].append(row)
    total = sum(row.gain for row in rows)
    told = []
    for subject, own in sorted(by_subject.items()):
        right = sum(row.strong_correct for row in own) / len(own)
        if len(own) >= _FAULTY_ROWS and right < _FAULTY_SHARE:
            told.append(
                f"{subject}: the strong model is right in {right:.2%}, which looks like a fault "
                "in how its answers were parsed"
            )
        share = sum(row.gain for row in own) / total if total else 0.0
        if share > _FAULTY_SHARE and len(by_subject) > 5:
            told.append(f"{subject}: {share:.0%} of the whole gain in {len(own)} rows")
    return tuple(told)
