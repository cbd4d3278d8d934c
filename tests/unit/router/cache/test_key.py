"""No two requests that may be answered differently have one key: generated traffic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.router.ask import Ask
from services.router.cache.key import Key, key_of
from services.router.policy.facts import Screening
from services.router.policy_store import VersionedPolicy
from services.router.tenants import Tenant
from tandem.router.v1 import router_pb2
from tests.unit.router.builders import SHIPPED
from tests.unit.router.test_executor import make_ask

POLICY = VersionedPolicy(SHIPPED, "v1")
CLEAN = Screening()
WORDS = st.sampled_from(["", "a", "b"])


@st.composite
def traffic(draw: st.DrawFn) -> Ask:
    """Requests that differ in a few fields of few values, so that many are almost the same."""
    request = router_pb2.RouteRequest()
    if draw(st.booleans()):
        request.messages.add(role=1, content=draw(WORDS) + "?")
        request.messages.add(role=2, content=draw(WORDS) + "!")
    request.messages.add(role=1, content="how" + draw(WORDS))
    request.system = draw(WORDS)
    request.max_output_tokens = draw(st.sampled_from([0, 8]))
    request.sampling.stop.extend(draw(st.sampled_from([[], ["x"]])))
    for field in (request.slots,):
        if draw(st.booleans()):
            field["plan"] = draw(WORDS)
    if draw(st.booleans()):
        request.snippets.add(id="1", text=draw(WORDS), score=0.9)
    if draw(st.booleans()):
        request.output.labels.values.extend(["a", "b"])
    tenant = Tenant(name=draw(st.sampled_from(["t", "u"])))
    return replace(
        make_ask(),
        request=request,
        tenant=tenant,
        session_id=draw(WORDS),
        task_type=draw(st.sampled_from(["open_question", "code"])),
    )


def _tenant(ask: Ask) -> Ask:
    return replace(ask, tenant=Tenant(name="v"))


def _session(ask: Ask) -> Ask:
    return replace(ask, session_id="c")


def _with(ask: Ask, change: Callable[[router_pb2.RouteRequest], Any]) -> Ask:
    request = router_pb2.RouteRequest()
    request.CopyFrom(ask.request)
    change(request)
    return replace(ask, request=request)


# One thing changed: pairs drawn apart are hardly ever almost equal.
CHANGES: dict[str, Callable[[Ask], Ask]] = {
    "nothing": lambda ask: ask,
    "tenant": _tenant,
    "session": _session,
    "task": lambda ask: replace(ask, task_type="short_summary"),
    "question": lambda ask: _with(ask, lambda r: setattr(r.messages[-1], "content", "howc")),
    "system": lambda ask: _with(ask, lambda r: setattr(r, "system", "c")),
    "history": lambda ask: _with(ask, lambda r: setattr(r.messages[0], "content", "c?")),
    "few_shot": lambda ask: _with(ask, lambda r: r.few_shot.add(role=1, content="c")),
    "tokens": lambda ask: _with(ask, lambda r: setattr(r, "max_output_tokens", 9)),
    "slot": lambda ask: _with(ask, lambda r: r.slots.update({"plan": "c"})),
    "snippet": lambda ask: _with(ask, lambda r: r.snippets.add(id="2", text="c")),
    "labels": lambda ask: _with(ask, lambda r: r.output.labels.values.append("c")),
    "stop": lambda ask: _with(ask, lambda r: r.sampling.stop.append("c")),
    "tier": lambda ask: _with(ask, lambda r: setattr(r, "tier_preference", 1)),
}


@given(traffic(), st.sampled_from(sorted(CHANGES)))
def test_one_change_makes_another_key(one: Ask, change: str) -> None:
    other = CHANGES[change](one)
    keys = key_of(one, CLEAN, POLICY), key_of(other, CLEAN, POLICY)
    if keys[0] is None or keys[1] is None:
        return
    private = len(one.request.messages) > 1 or one.request.slots or one.request.snippets
    owned = bool(private) or one.task_type == "code"
    same = facts_of(one) == facts_of(other) and (one.session_id == other.session_id or not owned)
    assert (keys[0].fingerprint == keys[1].fingerprint) == same
    if change not in ("nothing", "question", "session"):
        assert (keys[0].frame == keys[1].frame) == (change in ("task", "history") or same)


def facts_of(ask: Ask) -> tuple[Any, ...]:
    """All that may change the answer."""
    request = router_pb2.RouteRequest()
    request.CopyFrom(ask.request)
    return ask.tenant.name, ask.task_type, request.SerializeToString(deterministic=True)


@given(traffic(), traffic())
def test_a_key_is_shared_only_by_equal_requests_of_one_owner(one: Ask, other: Ask) -> None:
    keys = key_of(one, CLEAN, POLICY), key_of(other, CLEAN, POLICY)
    if keys[0] is None or keys[1] is None or keys[0].fingerprint != keys[1].fingerprint:
        return
    assert facts_of(one) == facts_of(other)
    private = len(one.request.messages) > 1 or one.request.slots or one.request.snippets
    if private or one.task_type == "code":
        assert one.session_id == other.session_id != ""


@given(traffic(), traffic())
def test_a_scope_is_shared_only_where_all_but_the_question_is_equal(one: Ask, other: Ask) -> None:
    keys = key_of(one, CLEAN, POLICY), key_of(other, CLEAN, POLICY)
    if keys[0] is None or keys[1] is None or keys[0].scope != keys[1].scope:
        return
    for ask in (one, other):
        ask.request.messages[-1].content = ""
    assert facts_of(one) == facts_of(other)


def key(ask: Ask | None = None, screening: Screening = CLEAN, **fields: Any) -> Key | None:
    ask = ask or make_ask()
    for name, value in fields.items():
        setattr(ask.request, name, value)
    return key_of(ask, screening, POLICY)


def test_equal_questions_share_a_key_whatever_their_marks_and_case() -> None:
    one, other = make_ask(), make_ask()
    other.request.messages[0].content = " HELLO!! "
    keys = key(one), key(other)
    assert keys[0] is not None
    assert keys[1] is not None
    assert keys[0].fingerprint == keys[1].fingerprint


@pytest.mark.parametrize(
    "screening", [Screening(kinds=("PHONE",)), Screening(failed=True)], ids=["pii", "failed"]
)
def test_private_requests_have_no_key(screening: Screening) -> None:
    assert key(screening=screening) is None


def test_pinned_drawn_live_and_tool_requests_have_no_key() -> None:
    assert key(privacy_hint=router_pb2.PRIVACY_HINT_KEEP_ON_EDGE) is None
    drawn, live, tools = make_ask(), make_ask(), make_ask()
    drawn.request.sampling.temperature = 0.8
    assert key(drawn) is None
    drawn.request.sampling.seed = 1
    assert key(drawn) is not None
    live.request.messages[0].content = "latest news?"
    assert key(live) is None
    tools.request.tools.add(name="send")
    assert key(tools) is None


def test_another_policy_starts_anew() -> None:
    before, after = key(), key_of(make_ask(), CLEAN, VersionedPolicy(SHIPPED, "v2"))
    assert before is not None
    assert after is not None
    assert before.fingerprint != after.fingerprint
