"""Complexity, similarity, sessions and grey modes by real requests, with the real embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.common.embedding.files import DEFAULT_DIR
from services.common.embedding.kit import build_embedder
from services.router.policy_store import load_policy
from tandem.router.v1 import router_pb2
from tests.e2e.conftest import BURN
from tests.e2e.harness import PATIENT, Tandem, eventually, question

# Code is never trivial by its length of answer, so that no rule speaks before the classifier.
EASY = "Write a Python function that adds two numbers"
HARD = (
    "Debug this: goroutines leak when a context is cancelled while a select waits on two channels"
)


class PolicyFile:
    """The shipped policy with some complexity settings changed, put in force."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.write()

    def write(self, **changes: Any) -> str:
        """Writes the file; returns its version."""
        policy = yaml.safe_load(Path("config/policy.yaml").read_text(encoding="utf-8"))
        policy["complexity"].update(changes)
        new = self.file.with_suffix(".new")
        new.write_text(yaml.safe_dump(policy, allow_unicode=True), encoding="utf-8")
        new.replace(self.file)
        return load_policy(self.file, Path("config/thresholds.yaml")).version


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> PolicyFile:
    return PolicyFile(tmp_path_factory.mktemp("policy") / "policy.yaml")


@pytest.fixture(scope="module")
def tandem(policy: PolicyFile, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    build_embedder(DEFAULT_DIR)
    system = Tandem(
        tmp_path_factory.mktemp("complexity"),
        {**BURN, "TANDEM_FAKE_EDGE__ANSWER_TOKENS": "10"},
        router={
            "TANDEM_ROUTER__EMBEDDER_DIR": str(DEFAULT_DIR),
            "TANDEM_ROUTER__POLICY_FILE": str(policy.file),
            "TANDEM_ROUTER__POLICY_POLL_MS": "50",
        },
    )
    yield system
    system.close()


def in_force(tandem: Tandem, version: str) -> None:
    def now() -> bool:
        request = router_pb2.DecideRequest(request=question("hello"))
        decision = tandem.stub.Decide(request, **PATIENT).decision
        return bool(decision.policy_version == version)

    eventually(now, "the policy in force")


CASES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "easy": ({}, EASY, "EDGE", "COMPLEXITY_LOW"),
    "hard": ({}, HARD, "CLOUD_LARGE", "COMPLEXITY_HIGH"),
    "similar to an easy example": (
        {"strategy": "similarity", "simple_examples": [EASY]},
        EASY,
        "EDGE",
        "SIMILARITY",
    ),
    "grey, the cloud answers": (
        {"low": 1, "high": 10, "large_from": 10, "grey_mode": "shadow_cloud"},
        EASY,
        "CLOUD_SMALL",
        "GREY_SHADOW",
    ),
    "grey, the edge first": (
        {"low": 1, "high": 10, "large_from": 10},
        EASY,
        "EDGE",
        "GREY_CASCADE",
    ),
    "grey, the examples decide": (
        {
            "low": 1,
            "high": 10,
            "large_from": 10,
            "grey_mode": "second_signal",
            "complex_examples": [EASY],
        },
        EASY,
        "CLOUD_LARGE",
        "SECOND_SIGNAL",
    ),
    "length alone": ({"strategy": "rules"}, EASY, "EDGE", "DEFAULT"),
}


@pytest.mark.parametrize("name", CASES)
def test_where_it_goes_and_why(tandem: Tandem, policy: PolicyFile, name: str) -> None:
    changes, text, target, reason = CASES[name]
    in_force(tandem, policy.write(**changes))
    result = tandem.stream(question(text, task_type="code"))
    assert result.served[1:3] == (target, reason)


def test_the_better_of_both_is_served_and_the_other_ended(
    tandem: Tandem, policy: PolicyFile
) -> None:
    grey = {"low": 1, "high": 10, "large_from": 10, "grey_mode": "shadow_best"}
    in_force(tandem, policy.write(**grey))
    tandem.upstream.script({"ttft_ms": 30_000}, {"chunk_ms": 0})
    slow = tandem.stream(question(EASY, task_type="code"))
    assert slow.served == ("L0", "EDGE", "GREY_SHADOW", "NONE")
    tandem.upstream.wait_outcome("disconnected")
    (row,) = tandem.wait_rows(slow.events[0].decision.request_id)
    assert [(a["target"], a["outcome"]) for a in row["attempts"]] == [
        ("CLOUD_SMALL", "CANCELLED"),
        ("EDGE", "ACCEPTED"),
    ]
    quick = tandem.stream(question(EASY, task_type="code"))
    assert quick.served == ("L2", "CLOUD_SMALL", "GREY_SHADOW", "NONE")
    eventually(tandem.edge_idle, "the edge's slot given back")


def test_yes_do_it_goes_where_the_hard_turn_went(tandem: Tandem, policy: PolicyFile) -> None:
    in_force(tandem, policy.write())
    first = question(HARD, task_type="code", session_id="hard-one")
    assert tandem.stream(first).served[1] == "CLOUD_LARGE"
    first.messages.add(role=2, content="Shall I mend it?")
    first.messages.add(role=1, content="yes, do it")
    assert tandem.stream(first).served[1:3] == ("CLOUD_LARGE", "SESSION_STICKY")
    # The same words in a session of another id are nobody's second turn.
    first.session_id = "another"
    assert tandem.stream(first).served[2] != "SESSION_STICKY"


def test_near_equal_questions_do_not_flip(tandem: Tandem, policy: PolicyFile) -> None:
    in_force(tandem, policy.write())
    texts = (
        EASY,
        "Write a Python function that adds three numbers",
        "Write code that adds 2 numbers",
    )
    served = [
        tandem.stream(question(text, task_type="code", session_id="equal")).served[1]
        for text in texts
    ]
    assert served == ["EDGE"] * 3


def test_decide_tells_the_score_and_no_text(tandem: Tandem, policy: PolicyFile) -> None:
    in_force(tandem, policy.write())
    request = router_pb2.DecideRequest(request=question(HARD, task_type="code"))
    response = tandem.stub.Decide(request, **PATIENT)
    (step,) = (step for step in response.steps if step.step == "complexity")
    assert float(step.value) >= 7.0
    assert "goroutines" not in str(response)
    assert response.decision.complexity == pytest.approx(float(step.value), abs=0.01)


def test_a_task_that_is_not_named_is_recognized(tandem: Tandem, policy: PolicyFile) -> None:
    in_force(tandem, policy.write())
    outcome = tandem.stream(question("用 Python 写一个函数：统计单词数量")).outcome
    assert outcome.decision.task_type == "code"
