"""Bytes that should be a RouteRequest, metadata, and files of policy."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from services.common.deadline import BudgetLimits, parse_budget
from services.common.errors import ConfigInvalid, TandemError
from services.common.pii.detector import StructuredDetector
from services.common.vocabulary import StreamMode
from services.router.ask import Ask
from services.router.cache.key import key_of
from services.router.config import RequestLimits
from services.router.gather import _texts
from services.router.policy.decide import decide
from services.router.policy.features import features_of
from services.router.policy_store import VersionedPolicy, load_policy
from services.router.screen import screen
from services.router.task import recognize
from services.router.tenants import Tenant
from services.router.validate import check_request
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2
from tests.fuzz.effort import EFFORT, damaged
from tests.unit.router.builders import SHIPPED, THRESHOLDS, make_facts

DETECTOR, LIMITS = StructuredDetector(), RequestLimits()
POLICY = Path("config/policy.yaml")
TENANT = Tenant(name="t")


def whole_request() -> router_pb2.RouteRequest:
    """Every field set, so that damage finds each."""
    turn = chat_pb2.Message(role=chat_pb2.ROLE_USER, content="Call 13812345678 about 你好")
    answer = chat_pb2.Message(role=chat_pb2.ROLE_ASSISTANT, content="yes")
    request = router_pb2.RouteRequest(
        messages=[turn, answer, turn],
        few_shot=[turn, answer],
        system="be brief",
        task_type="open_question",
        intent="a",
        channel="c",
        session_id="s",
        tools=[
            chat_pb2.Tool(name="f", description="d", parameters_json_schema='{"type": "object"}')
        ],
        slots={"name": "value"},
        snippets=[router_pb2.Snippet(id="1", text="a passage", score=0.7)],
        max_output_tokens=64,
        ttft_budget_ms=300,
        privacy_hint=router_pb2.PRIVACY_HINT_KEEP_ON_EDGE,
        tier_preference=router_pb2.TIER_PREFERENCE_EDGE_ONLY,
        stream_mode=router_pb2.STREAM_MODE_HOLD,
        sampling=chat_pb2.Sampling(temperature=0.5, top_p=0.9, seed=3, stop=["x"]),
    )
    request.output.json_schema = '{"type": "object", "properties": {"a": {"type": "string"}}}'
    return request


GOOD = whole_request().SerializeToString()


def handle(request: router_pb2.RouteRequest) -> None:
    """What the router does with a request before any model is called."""
    check = check_request(request, LIMITS)
    screening = screen(request, DETECTOR)
    features = features_of(_texts(request), SHIPPED.words)
    task = recognize(request, SHIPPED, None, None)
    budget = parse_budget((), native_remaining_s=1.0, limits=BudgetLimits(), now=0.0)
    ask = Ask(
        request, "id", TENANT, "c", request.session_id, budget, task, StreamMode.HOLD, check, False
    )
    key_of(ask, screening, VersionedPolicy(SHIPPED, "v"))
    decide(make_facts(task_type=task, features=features, screening=screening), SHIPPED, 0.0)
    check("some answer")


@EFFORT
@given(seed=st.integers(0, 2**63))
def test_damaged_requests_are_refused_or_handled(seed: int) -> None:
    with suppress(DecodeError, TandemError):
        handle(router_pb2.RouteRequest.FromString(damaged(GOOD, seed)))


@EFFORT
@given(text=st.text(max_size=200), score=st.floats(), schema=st.text(max_size=60))
def test_any_text_and_any_number(text: str, score: float, schema: str) -> None:
    request = whole_request()
    try:
        request.messages[0].content = text
        request.snippets[0].score = score
        request.slots[text] = text
        request.output.json_schema = schema
    except (UnicodeEncodeError, ValueError):
        return
    with suppress(TandemError):
        handle(request)


@EFFORT
@given(
    pairs=st.lists(
        st.tuples(
            st.sampled_from(
                ["deadline_ms", "elapsed_ms", "x-deadline-ms", "x-elapsed-ms", "other"]
            ),
            st.one_of(st.text(max_size=12), st.binary(max_size=12), st.integers().map(str)),
        ),
        max_size=4,
    ),
    native_s=st.none() | st.floats(-10, 1e6),
)
def test_any_metadata_gives_a_budget_or_a_refusal(
    pairs: list[tuple[str, str | bytes]], native_s: float | None
) -> None:
    limits = BudgetLimits()
    try:
        budget = parse_budget(pairs, native_remaining_s=native_s, limits=limits, now=5.0)
    except TandemError:
        return
    assert 0 < budget.remaining_ms(5.0) <= limits.max_ms
    assert budget.elapsed_ms >= 0


@pytest.mark.parametrize("file", [POLICY, THRESHOLDS])
def test_damaged_policy_files_are_refused_or_read(file: Path, tmp_path: Path) -> None:
    good = file.read_bytes()

    @EFFORT
    @given(seed=st.integers(0, 2**63))
    def look(seed: int) -> None:
        bad = tmp_path / file.name
        bad.write_bytes(damaged(good, seed))
        try:
            loaded = load_policy(
                bad if file is POLICY else POLICY, bad if file is THRESHOLDS else THRESHOLDS
            )
        except ConfigInvalid:
            return
        decide(make_facts(), loaded.policy, 0.0)
        handle_with(loaded)

    look()


def handle_with(loaded: VersionedPolicy) -> None:
    """A policy that was taken must serve."""
    features_of(_texts(whole_request()), loaded.policy.words)
    recognize(whole_request(), loaded.policy, None, None)
    assert loaded.policy.capability("unknown")
