"""`tandem evaluate pii` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from cli.evaluate import evaluate_app

RUN = CliRunner()
SPAN = {"type": "EMAIL_ADDRESS", "start": 5, "end": 19, "value": "jo@example.com"}
ROW = {
    "text": "mail jo@example.com, Jo",
    "spans": [SPAN, {"type": "PERSON", "start": 21, "end": 23}],
}


def test_json_is_one_object(tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    file.write_text(json.dumps(ROW) + "\n")
    done = RUN.invoke(evaluate_app, ["pii", "--data", str(file), "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    whole = report["structured"]
    assert (whole["recall"], whole["precision"], whole["f2"], whole["hits"]) == (1.0, 1.0, 1.0, 1)
    assert len(whole["recall_interval"]) == 2
    assert report["by_type"].keys() == {"EMAIL"}
    assert report["not_detected"] == {"PERSON": 1}
    assert report["ms_per_200_chars"] > 0


def test_table_and_generated_texts() -> None:
    done = RUN.invoke(evaluate_app, ["pii", "--generate", "60", "--seed", "3"])
    assert done.exit_code == 0, done.output
    assert "structured" in done.stdout
    assert "ms for 200 characters" in done.stdout


def test_bad_input_is_two_and_prints_no_result(tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    file.write_text(json.dumps(ROW) + '\n{"text": "cut')
    done = RUN.invoke(evaluate_app, ["pii", "--data", str(file), "--json"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{file}, line 2" in done.stderr
    assert "Traceback" not in done.stderr
    for arguments in (
        ["pii"],
        ["pii", "--data", str(file), "--generate", "5"],
        ["pii", "--generate", "0"],
    ):
        assert RUN.invoke(evaluate_app, arguments).exit_code == 2
