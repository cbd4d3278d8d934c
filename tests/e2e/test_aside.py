"""Shadow runs and late answers: off the caller's time, in rows of their own, never private."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import yaml

from tandem.common.v1 import decision_pb2
from tandem.router.v1 import router_pb2
from tests.e2e.conftest import BURN
from tests.e2e.harness import Tandem, eventually, question

SAY = "[[say:The sky is blue.]]"


@pytest.fixture(scope="module")
def tandem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    folder = Path(tmp_path_factory.mktemp("aside"))
    policy = yaml.safe_load(Path("config/policy.yaml").read_text(encoding="utf-8"))
    policy["shadow"]["share"] = 1.0
    policy["late"]["enabled"] = True
    # A last resort is only reached where the edge does not stand in for the cloud.
    policy["on_large_timeout"] = "next_level"
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy), encoding="utf-8")
    policy["words"]["cloud_keywords"] = ["sky"]
    policy["trivial"]["max_input_chars"] = 1
    (folder / "candidate.yaml").write_text(yaml.safe_dump(policy), encoding="utf-8")
    system = Tandem(
        folder,
        BURN,
        cloud={
            "TANDEM_CLOUD__TIERS__SMALL__RETRY": "none",
            "TANDEM_CLOUD__TIERS__LARGE__RETRY": "none",
        },
        router={
            "TANDEM_ROUTER__POLICY_FILE": str(folder / "policy.yaml"),
            "TANDEM_ROUTER__CANDIDATE__POLICY_FILE": str(folder / "candidate.yaml"),
        },
    )
    yield system
    system.close()


def rows_of(tandem: Tandem, request_id: str, arm: str) -> list[dict[str, object]]:
    return [r for r in tandem.ledger() if r["request_id"] == request_id and r["arm"] == arm]


def test_the_other_side_answers_too_and_both_are_compared(tandem: Tandem) -> None:
    result = tandem.stream(question(f"sky? {SAY}"))
    assert result.served[:2] == ("L0", "EDGE")
    request_id = result.events[0].decision.request_id
    eventually(lambda: bool(rows_of(tandem, request_id, "shadow")), "the shadow's row", 20)
    (row,) = rows_of(tandem, request_id, "shadow")
    told = json.loads(str(row["shadow"]))
    assert (told["served"], told["other"], told["by"]) == ("EDGE", "CLOUD_LARGE", "words")
    assert 0.0 <= told["agreement"] < 1.0
    assert [seen["model"] for seen in tandem.upstream.seen()] == ["large"]


def test_a_private_request_is_not_run_twice(tandem: Tandem) -> None:
    result = tandem.stream(question(f"I am jo@example.com. sky? {SAY}"))
    request_id = result.events[0].decision.request_id
    tandem.wait_rows(request_id)
    other = tandem.stream(question(f"sea? {SAY}")).events[0].decision.request_id
    eventually(lambda: bool(rows_of(tandem, other, "shadow")), "a later shadow's row", 20)
    assert rows_of(tandem, request_id, "shadow") == []


def test_a_better_answer_comes_after_a_last_resort(tandem: Tandem) -> None:
    tandem.upstream.script({"status": 503}, model="large")
    result = tandem.stream(question("计算三笔分期的实际年化利率"))
    assert result.served[:2] == ("L4", "FALLBACK")
    request_id = result.events[0].decision.request_id

    def found() -> router_pb2.GetResultResponse:
        wanted = router_pb2.GetResultRequest(request_id=request_id)
        got: router_pb2.GetResultResponse = tandem.stub.GetResult(wanted, timeout=9)
        return got

    eventually(lambda: found().state != router_pb2.RESULT_STATE_PENDING, "an end", 30)
    assert found().state == router_pb2.RESULT_STATE_READY
    assert found().response.text == "The fake upstream answers in a few words."
    assert found().response.outcome.decision.level == decision_pb2.LEVEL_L2
    eventually(lambda: bool(rows_of(tandem, request_id, "late")), "the late row")


def test_there_is_no_result_of_what_was_not_asked(tandem: Tandem) -> None:
    found = tandem.stub.GetResult(router_pb2.GetResultRequest(request_id="other"), timeout=9)
    assert found.state == router_pb2.RESULT_STATE_NONE
    with pytest.raises(grpc.RpcError) as refused:
        tandem.stub.GetResult(router_pb2.GetResultRequest(), timeout=9)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_dry_run_records_what_the_candidate_would_do(tandem: Tandem) -> None:
    result = tandem.stream(question(f"sky? {SAY}"))
    assert result.served[:2] == ("L0", "EDGE")
    rows = tandem.wait_rows(result.events[0].decision.request_id)
    (row,) = [row for row in rows if row["arm"] is None]
    would = json.loads(row["candidate"])
    assert (would["target"], would["reason"]) == ("CLOUD_LARGE", "KEYWORD_RULE")
    assert would["policy_version"] != row["policy_version"]
