"""`tandem evaluate routing` and `tandem train complexity` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from services.common.complexity.model import ComplexityModel
from tests.unit.common.complexity.test_model import EMBEDDER, rows

RUN = CliRunner()


@pytest.fixture(autouse=True)
def _words(monkeypatch: pytest.MonkeyPatch) -> None:
    """No built embedder is needed: words make the vectors."""
    monkeypatch.setattr("services.common.embedding.runner.Embedder.load", lambda _folder: EMBEDDER)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    lines = [
        {
            "prompt": row.prompt,
            "weak_correct": row.weak_correct,
            "strong_correct": row.strong_correct,
            "subject": "faulty" if number % 3 == 0 else "sound",
        }
        for number, row in enumerate(rows(90))
    ]
    for line in lines:
        line["strong_correct"] = line["strong_correct"] and line["subject"] != "faulty"
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def test_json_is_one_object_with_baselines_and_traps(data: Path) -> None:
    done = RUN.invoke(
        app, ["evaluate", "routing", "--train", str(data), "--test", str(data), "--json"]
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["apgr"] > 0.7
    assert 0 < report["cpt50"] < report["cpt80"] < 1
    assert report["ms_per_decision"] > 0
    assert report["baselines"].keys() == {"random", "tfidf_ridge", "length", "subject"}
    assert report["baselines"]["random"]["apgr"] == pytest.approx(0.5)
    assert any(
        trap.startswith("faulty: the strong model is right in 0.00%") for trap in report["traps"]
    )


def test_a_trained_model_can_be_loaded(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    done = RUN.invoke(app, ["train", "complexity", "--data", str(data), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert ComplexityModel.load(out, EMBEDDER.model_id).header.rows == 90


def test_bad_rows_are_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"prompt": "a", "weak_correct": "yes", "strong_correct": true}')
    done = RUN.invoke(app, ["train", "complexity", "--data", str(file), "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "line 1: `weak_correct` must be true" in done.output
