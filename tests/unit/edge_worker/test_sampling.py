"""Tokens from logits: exact figures, and nothing that depends on the company."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from services.edge_worker.answer import Answer, AnswerSpec
from services.edge_worker.sampling import (
    BadLogits,
    Row,
    SamplingParams,
    Scorer,
    alternatives,
    draw,
    greedy,
)

VOCAB = 5_000


def row(seed: int, scale: float = 4.0) -> Row:
    return (np.random.default_rng(seed).standard_normal(VOCAB) * scale).astype(np.float32)


def log_softmax(logits: Row) -> NDArray[np.float64]:
    wide: NDArray[np.float64] = logits.astype(np.float64) - float(logits.max())
    return wide - float(np.log(np.exp(wide).sum()))


@pytest.mark.parametrize("seed", range(5))
def test_score_is_exact(seed: int) -> None:
    logits = row(seed)
    before = logits.copy()
    score = Scorer(VOCAB).score(logits)
    expected = np.sort(log_softmax(logits))[::-1]
    assert score.best == int(logits.argmax())
    assert float(logits[score.best]) - score.logsumexp == pytest.approx(expected[0], abs=1e-5)
    assert score.margin == pytest.approx(expected[0] - expected[1], abs=1e-5)
    assert np.array_equal(logits, before), "the runtime's buffer was written to"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_logits_raise(bad: float) -> None:
    logits = row(0)
    logits[17] = bad
    with pytest.raises(BadLogits):
        Scorer(VOCAB).score(logits)


def test_masked_logits_are_fine() -> None:
    logits = np.full(VOCAB, -np.inf, dtype=np.float32)
    logits[3] = 1.0
    score = Scorer(VOCAB).score(logits)
    assert score.best == 3
    assert score.logsumexp == pytest.approx(1.0)


def test_greedy_skips_banned_tokens() -> None:
    logits = row(1)
    score = Scorer(VOCAB).score(logits)
    second = greedy(logits, score, frozenset({score.best}))
    assert second == int(np.argsort(-logits)[1])


def test_alternatives_are_the_most_likely() -> None:
    logits = row(2)
    found = alternatives(logits, Scorer(VOCAB).score(logits), 5)
    expected = log_softmax(logits)
    order = np.argsort(-logits, kind="stable")[:5]
    assert [token for token, _ in found] == order.tolist()
    assert [p for _, p in found] == pytest.approx(expected[order].tolist(), abs=1e-5)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 1000),
    top_k=st.integers(0, 60),
    top_p=st.floats(0.05, 1.0),
    temperature=st.floats(0.1, 2.0),
    scale=st.sampled_from([0.01, 1.0, 8.0]),
)
def test_draw_stays_inside_top_k_and_top_p(
    seed: int, top_k: int, top_p: float, temperature: float, scale: float
) -> None:
    """The quick way finds the same set as sorting the whole vocabulary."""
    logits = row(seed, scale)
    order = np.argsort(-logits, kind="stable")[: top_k or None]
    weights = np.exp((logits[order] - logits.max()).astype(np.float64) / temperature)
    kept = int(np.searchsorted(np.cumsum(weights), top_p * weights.sum() * (1 + 1e-6))) + 1
    allowed = set(order[: kept + 1].tolist())
    rng = np.random.default_rng(seed)
    for _ in range(5):
        assert draw(logits, SamplingParams(temperature, top_p, top_k), rng) in allowed


def test_draw_follows_the_distribution() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], dtype=np.float32))
    rng = np.random.default_rng(5)
    drawn = [draw(logits, SamplingParams(1.0, 0.9, 0), rng) for _ in range(6000)]
    share = np.bincount(drawn, minlength=4) / 6000
    assert share == pytest.approx([0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0.0], abs=0.03)


class Letters:
    """One letter a token."""

    def push(self, token: int) -> str:
        return chr(97 + token % 26)


def sample(seed: int, company: int) -> str:
    """An answer drawn while `company` others are drawn from the same scorer."""
    params = SamplingParams(temperature=1.0, top_p=0.95)
    one = Answer(AnswerSpec(params, seed, max_tokens=20), Letters())
    others = [Answer(AnswerSpec(params, 99 + i, max_tokens=20), Letters()) for i in range(company)]
    scorer, text = Scorer(VOCAB), ""
    for step in range(20):
        for i, other in enumerate(others):
            other.take(row(1000 * i + step), scorer)
        delta, _ = one.take(row(step), scorer)
        text += delta.text if delta is not None else ""
    return text


def test_company_does_not_change_a_seeded_answer() -> None:
    assert sample(7, company=0) == sample(7, company=5)
    assert sample(7, company=0) != sample(8, company=0)
