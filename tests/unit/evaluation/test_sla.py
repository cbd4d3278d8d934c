"""The promise and what it does to a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from evaluation.rows import BadData
from evaluation.sla import Sla, read_sla
from services.router.policy_store import load_policy
from tests.unit.evaluation.judged_rows import judged, write_lines

SHIPPED = Path("config/sla.yaml")


def test_the_shipped_file_is_the_default_with_tasks_of_the_policy() -> None:
    read, own = read_sla(SHIPPED), Sla()
    assert read.model_dump(exclude={"classes"}) == own.model_dump(exclude={"classes"})
    known = load_policy(Path("config/policy.yaml")).policy.capabilities
    for name, one in read.classes.items():
        assert one.accuracy_floor == own.classes[name].accuracy_floor
        assert one.p95_ms == own.classes[name].p95_ms
        assert set(one.tasks) <= set(known)
    assert read.of("intent_classification").accuracy_floor == 0.95
    assert read.of("anything").accuracy_floor == 0.98


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default_class: none", "default_class"),
        ("classes: {a: {accuracy_floor: 2, p95_ms: 1}}\ndefault_class: a", "accuracy_floor"),
        ("classes: {complex: {accuracy_floor: 0.9, p95_ms: 1, tasks: [x]}, "
         "b: {accuracy_floor: 0.9, p95_ms: 1, tasks: [x]}}", "in more than one class: x"),
    ],
)  # fmt: skip
def test_bad_promises(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "sla.yaml"
    file.write_text(text)
    with pytest.raises(BadData, match=said):
        read_sla(file)


def test_a_task_under_its_floor_is_no_task_for_the_edge(tmp_path: Path) -> None:
    good = judged(1_500, lambda score: 0.99, task="intent_classification")
    bad = judged(1_500, lambda score: 0.6, task="open_question")
    file = write_lines(tmp_path / "a.jsonl", good + bad)
    options = ["--data", str(file), "--sla", str(SHIPPED)]
    done = CliRunner().invoke(app, ["sweep", *options])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "accepted-accuracy at least 95.0%" in said
    assert 'capabilities.open_question.edge: "no"' in said
    assert "capabilities.intent_classification" not in said
