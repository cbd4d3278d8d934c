"""Drift is said where there is some, and not by chance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cli.main import app
from evaluation.drift import drift, population_stability
from evaluation.judged.counts import Counts
from evaluation.rows import BadData
from tests.unit.evaluation.judged_rows import judged, write_lines

RUN = CliRunner()


def counts_of(count: int, seed: int, power: float = 1.0, lost: float = 0.0) -> Counts:
    """Scores of U^power, right with their own probability less `lost`."""
    random = np.random.default_rng(seed)
    scores = np.sort(np.round(random.random(count) ** power, 4))
    right = (random.random(count) < scores - lost).astype(np.float64)
    one = np.ones(count)
    return Counts(scores, np.full(count, ""), np.zeros(count, int), one, right, one, one)


def test_the_same_traffic_is_stable() -> None:
    verdicts = [
        drift("t", counts_of(1_500, i), counts_of(800, 1_000 + i)).verdict for i in range(60)
    ]
    assert verdicts.count("drift") <= 3
    assert verdicts.count("stable") >= 54


def test_moved_scores_and_fallen_accuracy_are_told() -> None:
    moved = drift("t", counts_of(1_500, 1), counts_of(800, 2, power=0.4))
    assert moved.verdict == "drift"
    assert any("PSI" in text for text in moved.why)
    fallen = drift("t", counts_of(1_500, 1), counts_of(800, 2, lost=0.2))
    assert fallen.verdict == "drift"
    assert any("accuracy fell" in text for text in fallen.why)
    assert any("calibration error rose" in text for text in fallen.why)


def test_psi_is_nothing_for_the_same_and_known_for_halves() -> None:
    one = counts_of(1_000, 1)
    assert population_stability(one, one) == pytest.approx(0.0, abs=1e-12)
    assert population_stability(one, one.where(one.scores > 0.5)) > 1.0


def test_few_rows_are_refused() -> None:
    with pytest.raises(BadData, match="5 rows in the new rows; at least 100 are needed"):
        drift("t", counts_of(500, 1), counts_of(5, 2))


def test_exit_codes(tmp_path: Path) -> None:
    old = write_lines(tmp_path / "old.jsonl", judged(800))
    same = write_lines(tmp_path / "same.jsonl", judged(600, seed=7))
    bad = write_lines(tmp_path / "bad.jsonl", judged(600, lambda score: score / 2))
    other = write_lines(tmp_path / "other.jsonl", [row | {"model_id": "m2"} for row in judged(600)])
    for file, code in ((same, 0), (bad, 1), (other, 2)):
        done = RUN.invoke(app, ["drift", "--reference", str(old), "--data", str(file)])
        assert done.exit_code == code, done.output
    assert "model_id 'm2'" in done.stderr
