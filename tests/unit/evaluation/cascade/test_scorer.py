"""`tandem train scorer`: what it writes is what the router reads."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cli.main import app
from services.common.confidence.agreement import agreement
from services.common.confidence.thresholds import Thresholds

RUN = CliRunner()
IDS = ["--task", "open_question", "--model-id", "m1", "--prompt-id", "p1"]


def write(path: Path, count: int = 300) -> Path:
    """Answers are right as often as their samples agree."""
    dice, lines = random.Random(3), []
    for number in range(count):
        sure = dice.random()
        samples = ["Seven." if dice.random() < sure else str(dice.randrange(99)) for _ in range(5)]
        gold = "seven" if dice.random() < sure else "eight"
        row = {"question": f"What is {number}?", "samples": samples, "gold": gold}
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines))
    return path


def test_what_it_writes_is_what_the_router_reads(tmp_path: Path) -> None:
    out = tmp_path / "scorers.yaml"
    file = write(tmp_path / "sampled.jsonl")
    done = RUN.invoke(app, ["train", "scorer", "--data", str(file), "--out", str(out), *IDS])
    assert done.exit_code == 0, done.output
    assert "300 rows" in done.output
    read = Thresholds.model_validate(yaml.safe_load(out.read_text()))
    scorer = read.scorer("open_question", "m1", "p1")
    assert scorer is not None
    assert read.scorer("open_question", "m2", "p1") is None
    agreed, apart = (
        scorer.score("What is 1?", agreement(answers))
        for answers in (["seven"] * 5, ["seven", "1", "2", "3", "4"])
    )
    assert agreed > apart + 0.3


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"question": "a?", "samples": [], "gold": "b"}', "line 1: `samples` must be texts"),
        ('{"question": "a?", "samples": ["b"]}', "line 1: the column `gold` is missing"),
        ('{"question": "a?", "samples": ["b"], "right": true}', "at least 50 are needed"),
    ],
)
def test_bad_rows_are_told(tmp_path: Path, line: str, said: str) -> None:
    file, out = tmp_path / "a.jsonl", tmp_path / "out.yaml"
    file.write_text(line)
    done = RUN.invoke(app, ["train", "scorer", "--data", str(file), "--out", str(out), *IDS])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert not out.exists()
