"""`tandem calibrate` and `tandem sweep` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cli.main import app
from services.common.confidence.thresholds import Thresholds
from tests.unit.evaluation.judged_rows import judged, write_lines

RUN = CliRunner()


def test_what_calibrate_writes_is_what_the_router_reads(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", judged(600, lambda score: score**2))
    out = tmp_path / "made" / "calibrations.yaml"
    done = RUN.invoke(app, ["calibrate", "--data", str(file), "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)[0]
    assert report["rows"] == 600
    assert report["ece_after"] < report["ece_before"]
    read = Thresholds.model_validate(yaml.safe_load(out.read_text()))
    assert read.calibrator("order", "m1", "p1", read.calibrations[0].signals).refused is False
    assert read.calibrator("order", "m2", "p1", read.calibrations[0].signals).refused is True


def test_what_sweep_writes_is_what_the_router_reads(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", judged(5_000))
    out = tmp_path / "thresholds.yaml"
    options = ["--target", "0.8", "--out", str(out)]
    done = RUN.invoke(app, ["sweep", "--data", str(file), *options])
    assert done.exit_code == 0, done.output
    assert "Learn-then-Test, fixed sequence" in " ".join(done.stdout.split())
    for name in ("chosen", "point estimate", "in force"):
        assert name in done.stdout
    read = Thresholds.model_validate(yaml.safe_load(out.read_text()))
    assert 0.5 < read.bands("order", "").edges[2] < 0.9
    assert len(read.calibrations) == 1


def test_prove_prints_one_object(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", judged(400))
    options = ["--data", str(file), "--target", "0.8", "--resamples", "5", "--json"]
    done = RUN.invoke(app, ["sweep", "prove", *options])
    assert done.exit_code == 0, done.output
    assert [one["resamplings"] for one in json.loads(done.stdout)] == [5, 5, 5]


@pytest.mark.parametrize("command", ["calibrate", "sweep"])
def test_bad_input_is_two_and_leaves_the_old_file(tmp_path: Path, command: str) -> None:
    file, out = tmp_path / "a.jsonl", tmp_path / "out.yaml"
    out.write_text("old: true\n")
    good = judged(600)
    few = [*good, *judged(5, task="rare")]
    mixed = [*good, good[0] | {"model_id": "m2", "id": "new"}]
    twice = [*good, good[0]]
    for rows, said in (
        (few, "task 'rare': 5 rows"),
        (mixed, f"{file}, line 601"),
        (twice, f"{file}, line 601"),
    ):
        write_lines(file, rows)
        done = RUN.invoke(app, [command, "--data", str(file), "--out", str(out)])
        assert done.exit_code == 2, done.output
        assert said in done.stderr
        assert "Traceback" not in done.output
        assert out.read_text() == "old: true\n"
        assert sorted(tmp_path.iterdir()) == [file, out]
    assert RUN.invoke(app, [command, "--data", str(tmp_path / "none")]).exit_code == 2
