"""The cascade's rows, fit, threshold and measures, on made-up rows whose truth is known."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cli.main import app
from evaluation.cascade.curve import curve, least_escalation
from evaluation.cascade.data import CascadeRow, read_cascade
from evaluation.cascade.fit import MIN_ROWS, cross_judge, fit
from evaluation.cascade.measure import measure
from evaluation.rows import BadData
from services.common.confidence.agreement import agreement


def made_up(count: int, seed: int) -> list[CascadeRow]:
    """The small model is right as often as its samples agree; the large one always."""
    dice, rows = random.Random(seed), []
    for number in range(count):
        sure = dice.random()
        answers = ["7" if dice.random() < sure else str(dice.randrange(20, 99)) for _ in range(20)]
        rows.append(
            CascadeRow(
                question=f"What is {number} of {number}?",
                found=agreement(answers),
                weak_right=dice.random() < sure,
                strong_right=True,
            )
        )
    return rows


def test_a_fitted_judge_tells_right_from_wrong_and_is_calibrated() -> None:
    rows = made_up(400, 2)
    report = measure(rows, fit(made_up(400, 1), within=0.05).verdicts(rows))
    # Agreement itself is the truth here: nothing learned can be much better.
    assert report.auroc > 0.78
    assert report.brier_after < report.brier_before + 0.01
    assert report.calibrated_p > 0.01
    assert report.accuracy > 0.90
    assert 0 < report.escalation < 1


def test_more_may_be_lost_for_fewer_escalations() -> None:
    rows = made_up(300, 3)
    shares = [fit(rows, within=within).expected.escalation for within in (0.0, 0.05, 0.2)]
    assert shares[0] >= shares[1] >= shares[2]
    assert shares[0] > shares[2]


def test_a_doubtful_point_is_not_taken() -> None:
    rows = made_up(120, 4)
    points = curve(np.array([row.found.share for row in rows]), rows)
    plain = least_escalation(points, 0.05, 0.5)
    sure = least_escalation(points, 0.05, 0.99)
    assert plain.shortfall <= 0.05
    assert sure.escalation > plain.escalation


def test_the_curve_runs_from_nothing_to_everything() -> None:
    rows = made_up(60, 5)
    points = curve(np.array([row.found.share for row in rows]), rows)
    assert (points[0].escalation, points[-1].escalation) == (0.0, 1.0)
    assert points[-1].accuracy == points[-1].strong_accuracy


def test_every_row_is_judged_by_a_judge_that_did_not_see_it() -> None:
    rows = made_up(200, 6)
    # With labels that are pure chance, out of fold nothing can be told apart.
    dice = random.Random(7)
    blind = [
        CascadeRow(row.question, row.found, dice.random() < 0.5, strong_right=True) for row in rows
    ]
    report = measure(blind, cross_judge(blind, 4, within=0.01, confidence=0.85))
    assert 0.35 < report.auroc < 0.65


def test_too_few_rows_are_refused_with_the_number_needed() -> None:
    with pytest.raises(BadData, match=f"at least {MIN_ROWS}"):
        fit(made_up(20, 1), within=0.01)
    sure = [CascadeRow("?", agreement(["1"]), weak_right=True, strong_right=True)] * MIN_ROWS
    with pytest.raises(BadData, match="10 right and 10 wrong"):
        fit(sure, within=0.01)


GOOD = {"question": "2+2?", "gold": "4", "weak_samples": ["4.0", None], "strong_answer": 4}


def test_numbers_and_nulls_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    (row,) = read_cascade(path)
    assert (row.weak_right, row.strong_right, row.found.unreadable) == (True, True, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"question": 3}, "`question` must be a str"),
        ({"weak_samples": []}, "`weak_samples` is empty"),
        ({"weak_samples": [["4"]]}, r"weak_samples\[0\] must be a text"),
        ({"gold": None}, "`gold` is missing or null"),
    ],
)
def test_bad_rows_name_file_line_and_column(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps({**GOOD, **change}) + "\n")
    with pytest.raises(BadData, match=f"line 2.*{said}"):
        read_cascade(path)


def test_the_command_says_what_it_cannot_use(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "a"}) + "\n")
    told = CliRunner().invoke(app, ["evaluate", "cascade", "--train", str(path), "--folds", "2"])
    assert told.exit_code == 2
    assert "line 1: the column `weak_samples` is missing" in told.output


def test_the_command_prints_one_object(tmp_path: Path) -> None:
    dice, path = random.Random(1), tmp_path / "rows.jsonl"
    with path.open("w") as file:
        for number in range(80):
            answers = ["7" if dice.random() < number / 80 else "8" for _ in range(9)]
            row = {"question": f"{number}?", "gold": "7", "weak_samples": answers}
            file.write(json.dumps({**row, "strong_answer": "7"}) + "\n")
    told = CliRunner().invoke(
        app, ["evaluate", "cascade", "--train", str(path), "--test", str(path), "--json"]
    )
    assert told.exit_code == 0, told.output
    found = json.loads(told.output)
    wanted = {"auroc", "ece_before", "ece_after", "brier_before", "brier_after"}
    assert wanted | {"accuracy", "escalation"} <= found.keys()
