"""Where questions are answered, end to end."""

from __future__ import annotations

import json

import pytest

from tandem.router.v1 import router_pb2
from tests.e2e.harness import PATIENT, Tandem, question

SAY = "[[say:Rome is the capital. It is old.]]"


def test_a_trivial_question_is_answered_at_the_edge(tandem: Tandem) -> None:
    result = tandem.stream(question(f"capital? {SAY}"))
    assert result.served == ("L0", "EDGE", "TRIVIAL_RULE", "NONE")
    assert result.text == "Rome is the capital. It is old."
    assert int(result.trailers["elapsed_ms"]) > 0
    assert tandem.upstream.seen() == []


def test_a_hard_question_goes_to_the_large_cloud_model(tandem: Tandem) -> None:
    result = tandem.stream(question("计算三笔分期的实际年化利率"))
    assert result.served == ("L3", "CLOUD_LARGE", "HARD_RULE", "NONE")
    assert result.text == "The fake upstream answers in a few words."
    assert result.outcome.standin
    assert result.outcome.usage.cost_micro_usd > 0
    assert tandem.upstream.seen()[0]["model"] == "large"


def test_without_a_classifier_the_strong_model_answers_and_says_why(tandem: Tandem) -> None:
    result = tandem.stream(question("Write a function that adds two numbers", task_type="code"))
    assert result.served == ("L3", "CLOUD_LARGE", "ROUTER_DEGRADED", "NONE")


@pytest.mark.parametrize(
    "private",
    ["call me at 138 0013 8000", "write to jo@example.com", "我的手机是１３８００１３８０００"],
)
def test_private_text_stays_whatever_else_is_asked(tandem: Tandem, private: str) -> None:
    result = tandem.stream(question(f"{private}. Prove it step by step. {SAY}"))
    assert result.served == ("L0", "EDGE", "PII_PIN", "NONE")
    assert tandem.upstream.seen() == []


@pytest.mark.parametrize("place", ["system", "few_shot", "slots", "snippets", "tools", "labels"])
def test_private_text_is_found_in_every_field(tandem: Tandem, place: str) -> None:
    request = question("计算三笔分期的实际年化利率")
    mail = "jo.doe@example.com"
    if place == "system":
        request.system = f"Answer {mail}"
    elif place == "few_shot":
        request.few_shot.add(role=1, content=mail)
    elif place == "slots":
        request.slots["mail"] = mail
    elif place == "snippets":
        request.snippets.add(id="1", text=mail, score=0.9)
    elif place == "tools":
        request.tools.add(name="send", description=f"sends to {mail}")
    else:
        request.output.labels.values.extend([mail, "other"])
    result = tandem.stream(request)
    assert result.outcome.decision.target in (1, 5)
    assert result.served[2] != "HARD_RULE"
    assert tandem.upstream.seen() == []


def test_keep_on_edge_is_obeyed(tandem: Tandem) -> None:
    request = question("计算三笔分期的实际年化利率", privacy_hint=1)
    assert tandem.stream(request).served[:3] == ("L0", "EDGE", "PII_PIN")
    assert tandem.upstream.seen() == []


def test_a_tier_preference_only_removes(tandem: Tandem) -> None:
    small = question("计算三笔分期的实际年化利率", tier_preference=2)
    assert tandem.stream(small).served == ("L2", "CLOUD_SMALL", "TIER_LIMIT", "NONE")
    edge = question("计算三笔分期的实际年化利率", tier_preference=1)
    assert tandem.stream(edge).served == ("L0", "EDGE", "TIER_LIMIT", "NONE")


def test_an_answer_outside_its_labels_goes_on_to_the_cloud(tandem: Tandem) -> None:
    tandem.upstream.script({"text": "refund"})
    request = question(f"which? {SAY}")
    request.output.labels.values.extend(["refund", "complaint"])
    result = tandem.stream(request)
    assert result.served == ("L2", "CLOUD_SMALL", "VALIDATION_FAILED", "QUALITY")
    assert result.text == "refund"
    assert [a.outcome for a in result.outcome.attempts] == [2, 1]


def test_hold_shows_nothing_before_the_end_and_commit_shows_sentences(tandem: Tandem) -> None:
    hold = tandem.stream(question(f"capital? {SAY}", stream_mode=1))
    assert [e.WhichOneof("event") for e in hold.events] == ["decision", "chunk", "final"]
    commit = tandem.stream(question(f"capital? {SAY}", stream_mode=2))
    chunks = [e.chunk.text for e in commit.events if e.HasField("chunk")]
    assert len(chunks) > 1
    assert chunks[0] == "Rome is the capital. "


def test_unary_and_stream_agree(tandem: Tandem) -> None:
    response = tandem.stub.Route(question(f"capital? {SAY}"), **PATIENT)
    assert response.text == "Rome is the capital. It is old."
    assert response.outcome.decision.target == 1
    assert response.outcome.attempts[0].output_tokens > 10


def test_decide_explains_and_leaves_no_record(tandem: Tandem) -> None:
    request = router_pb2.DecideRequest(request=question("计算三笔分期的实际年化利率"))
    metadata = [*PATIENT["metadata"], ("x-request-id", "only-explained")]
    response = tandem.stub.Decide(request, timeout=60, metadata=metadata)
    assert response.plan[0].target == 3
    assert "hard_rules" in [step.step for step in response.steps]
    assert "利率" not in str(response)
    assert tandem.upstream.seen() == []
    # A later request's row is there, the explained one's is not.
    later = tandem.stream(question(f"capital? {SAY}"))
    tandem.wait_rows(later.events[0].decision.request_id)
    assert "only-explained" not in [row["request_id"] for row in tandem.ledger()]


def test_each_request_leaves_one_row_without_text(tandem: Tandem) -> None:
    result = tandem.stream(question(f"capital? {SAY}", session_id="my-session"))
    request_id = result.events[0].decision.request_id
    (row,) = tandem.wait_rows(request_id)
    assert (row["ended"], row["level"], row["target"]) == ("ANSWERED", "L0", "EDGE")
    assert row["attempts"][0]["outcome"] == "ACCEPTED"
    written = json.dumps(row)
    assert "capital" not in written and "Rome" not in written and "my-session" not in written
