"""What is trained is what runs: arrays equal scikit-learn, files come back, others are refused."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from typer.testing import CliRunner

from cli.main import app
from evaluation.cache_data import BadPairs, Pair, embed_pairs, read_pairs
from evaluation.cache_report import report
from evaluation.cache_score import curve, measure, threshold_at
from evaluation.cache_verifier import TARGET_RECALL, as_arrays, fit
from services.common.embedding.runner import Embedder, Vector
from services.common.errors import ConfigInvalid
from services.common.similarity.features import WordVectors, pair_features
from services.common.similarity.verifier import Verifier, load_verifier


class ByLetters:
    """Vectors of letter counts."""

    model_id = "letters"

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        made = []
        for text in texts:
            values = np.full(512, 1e-3, np.float32)
            for char in text.lower():
                values[ord(char) % 512] += 1
            made.append(Vector(values / np.linalg.norm(values), 0.0))
        return made


EMBEDDER = cast("Embedder", ByLetters())


def pairs(count: int, seed: int) -> list[Pair]:
    """True pairs swap how they ask, wrong ones what they ask about."""
    draw = random.Random(seed)
    things = ["password", "invoice", "parcel", "refund", "laptop", "ticket", "router", "garden"]
    made = []
    for _ in range(count):
        one, other = draw.sample(things, 2)
        same = draw.random() < 0.5
        left = f"how do I {draw.choice(['find', 'get', 'see'])} my {one}"
        right = f"{draw.choice(['where can I', 'how can I'])} find my {one if same else other}"
        made.append(Pair(left, right, same))
    return made


@pytest.fixture(scope="module")
def verifier() -> Verifier:
    return fit(embed_pairs(pairs(160, 1), EMBEDDER), "faq", EMBEDDER)


def test_a_fitted_verifier_tells_unseen_pairs_apart(verifier: Verifier) -> None:
    made = report(embed_pairs(pairs(120, 2), EMBEDDER), EMBEDDER, verifier)
    assert made.fitted is not None
    assert made.fitted.recall >= TARGET_RECALL - 0.15
    assert made.fitted.wrong_hit_share <= 0.05


def test_files_come_back_the_same(verifier: Verifier, tmp_path: Path) -> None:
    verifier.save(tmp_path)
    again = load_verifier(tmp_path, "letters")
    words = WordVectors(lambda texts: np.stack([v.values for v in EMBEDDER.embed(texts)]))
    for pair in pairs(40, 3):
        one, other = (vector.values for vector in EMBEDDER.embed([pair.a, pair.b]))
        accepted = verifier.accepts(pair.a, pair.b, (one, other), words)
        assert again.accepts(pair.a, pair.b, (one, other), words) == accepted
        assert again.accepts(pair.b, pair.a, (other, one), words) == accepted
        figures = pair_features(pair.a, pair.b, 0.9, verifier.corpus, words)
        turned = pair_features(pair.b, pair.a, 0.9, verifier.corpus, words)
        assert np.allclose(figures, turned, atol=1e-5)


@pytest.mark.parametrize("broken", ["absent", "embedder", "format", "arrays", "header"])
def test_other_files_are_refused(verifier: Verifier, tmp_path: Path, broken: str) -> None:
    verifier.save(tmp_path)
    header = tmp_path / "verifier.json"
    if broken == "absent":
        header.unlink()
    elif broken == "format":
        header.write_text(json.dumps({**json.loads(header.read_text()), "format": 0}))
    elif broken == "arrays":
        (tmp_path / "verifier.npz").write_bytes(b"PK\x03\x04")
    elif broken == "header":
        header.write_text("[]")
    with pytest.raises(ConfigInvalid):
        load_verifier(tmp_path, "other" if broken == "embedder" else "letters")


def test_trees_as_arrays_are_scikit_learns() -> None:
    draw = np.random.default_rng(0)
    figures = draw.normal(size=(400, 5)).astype(np.float32)
    same = figures[:, 0] * figures[:, 1] + 0.3 * figures[:, 2] > 0
    model: Any = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=9).fit(figures, same)
    trees = as_arrays([stage[0].nodes for stage in model._predictors], model._baseline_prediction)
    unseen = draw.normal(size=(700, 5)).astype(np.float32)
    assert np.allclose(trees.log_odds(unseen), model.decision_function(unseen))


def test_figures_of_a_threshold() -> None:
    same = np.array([True, True, False, True])
    scores, allowed = np.array([0.9, 0.8, 0.85, 0.7]), np.array([True, True, True, False])
    (point,) = curve(scores, allowed, same, [0.7])
    assert (point.hits, point.wrong_hits) == (3, 1)
    assert point.recall == pytest.approx(2 / 3)
    assert threshold_at(scores, allowed, same, 0.3) == 0.9
    assert threshold_at(scores, allowed, same, 1.0) == float("-inf")
    assert measure(np.zeros(4, bool), same, 1.0).wrong_hit_share == 0.0


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[]", ":1: must be an object"),
        ("{", ":1: not JSON"),
        ('{"a": "x", "same": true}', ":1: b: must be a text"),
        ('{"a": " ", "b": "x", "same": true}', ":1: a: must be a text"),
        ('{"a": "x", "b": "y", "same": "yes"}', ":1: same: must be true or false"),
        ("", ": holds no pair"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path: Path, line: str, says: str) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(line)
    with pytest.raises(BadPairs, match=says):
        read_pairs(file)


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["evaluate", "cache", "--data", str(tmp_path / "absent")])
    assert done.exit_code == 2
    assert "cannot be read" in done.output
    few = tmp_path / "few.jsonl"
    few.write_text('{"a": "x", "b": "y", "same": true}\n')
    with pytest.raises(BadPairs, match="at least 40"):
        fit(embed_pairs(read_pairs(few), EMBEDDER), "faq", EMBEDDER)
