"""What is sent to Anthropic's Messages API, and how its events are read."""

from __future__ import annotations

import contextlib
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cloud_proxy.policy.cost import Tokens
from services.cloud_proxy.providers.anthropic import anthropic_wire, write_message
from services.cloud_proxy.providers.body import Dialect, write_body
from services.cloud_proxy.providers.messages import MessageAssembler
from services.cloud_proxy.redaction.gate import Gate, Rule
from services.cloud_proxy.request import Output, Role, Sampling, Tool, ToolCall, Turn
from services.common.errors import (
    InvalidField,
    UpstreamError,
    UpstreamMalformed,
    UpstreamMisconfigured,
    UpstreamOverloaded,
    UpstreamRefused,
)
from services.common.pii.detector import StructuredDetector
from services.common.vocabulary import FinishReason
from tests.fakes import upstream_messages
from tests.fakes.upstream_script import Behaviour
from tests.unit.cloud_proxy.requests import request

DIALECT = Dialect("claude-x", 800)


async def body(dialect: Dialect = DIALECT, **fields: Any) -> dict[str, Any]:
    cleared = await Gate(StructuredDetector(), Rule.ALLOW).clear(request(**fields))
    return write_message(cleared.request, dialect)


def turn(role: Role, text: str, *calls: ToolCall[str], of: str = "") -> Turn[str]:
    return Turn(role, text, calls, of)


async def test_a_small_request() -> None:
    assert await body() == {
        "model": "claude-x",
        "max_tokens": 800,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
    }


async def test_system_stands_apart_and_holds_the_form() -> None:
    sent = await body(system="Be brief.", output=Output(labels=("yes", "no")))
    assert sent["system"].startswith("Be brief.\n\nAnswer with exactly one")
    sent = await body(output=Output(json_schema='{"type": "object"}'))
    assert sent["system"].endswith('{"type": "object"}')


async def test_tools_and_their_results_take_the_right_places() -> None:
    calls = [ToolCall(f"c{i}", "look", '{"q": 1}') for i in range(2)]
    sent = await body(
        few_shot=(turn(Role.USER, "one"),),
        messages=(
            turn(Role.USER, "two"),
            turn(Role.ASSISTANT, "", *calls),
            turn(Role.TOOL, "r0", of="c0"),
            turn(Role.USER, "and?"),
            turn(Role.TOOL, "r1", of="c1"),
        ),
        tools=(Tool("look", "", '{"properties": {}}'),),
    )
    assert sent["tools"] == [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]
    user, assistant, results = sent["messages"]
    assert [block["text"] for block in user["content"]] == ["one", "two"]
    assert assistant["content"][0] == {
        "type": "tool_use",
        "id": "c0",
        "name": "look",
        "input": {"q": 1},
    }
    assert [block["type"] for block in results["content"]] == ["tool_result", "tool_result", "text"]


@given(st.lists(st.tuples(st.sampled_from(Role), st.sampled_from(["", "x"])), max_size=8))
async def test_roles_alternate(turns: list[tuple[Role, str]]) -> None:
    made = tuple(turn(r, text, of="c" if r is Role.TOOL else "") for r, text in turns)
    roles = [message["role"] for message in (await body(messages=made))["messages"]]
    assert all(one != other for one, other in itertools.pairwise(roles))


async def test_arguments_that_are_no_object_are_named() -> None:
    call = turn(Role.ASSISTANT, "", ToolCall("c", "look", "[]"))
    with pytest.raises(InvalidField, match="arguments_json"):
        await body(messages=(call,))


async def test_sampling() -> None:
    both = Sampling(temperature=1.5, top_p=0.5, top_k=4, stop=("END",))
    sent = await body(sampling=both, max_output_tokens=7)
    assert (sent["temperature"], sent["stop_sequences"], sent["max_tokens"]) == (1.0, ["END"], 7)
    assert not {"top_p", "top_k", "seed"} & set(sent)
    none = Dialect("m", 800, top_k=True, sampling=False)
    assert not {"temperature", "top_p", "top_k"} & set(await body(none, sampling=both))
    cleared = await Gate(StructuredDetector(), Rule.ALLOW).clear(request(sampling=both))
    assert not {"temperature", "top_p", "top_k"} & set(write_body(cleared.request, none))


def test_the_key_is_a_header_and_never_shown() -> None:
    wire = anthropic_wire(DIALECT, "sk-secret")
    assert wire.headers == {"anthropic-version": "2023-06-01", "x-api-key": "sk-secret"}
    assert "sk-secret" not in repr(wire)
    assert "x-api-key" not in anthropic_wire(DIALECT, "").headers


def read(how: Behaviour) -> tuple[str, MessageAssembler]:
    assembler, text = MessageAssembler("claude-x"), ""
    asked = {"model": "claude-x", "messages": [{"role": "user", "content": []}]}
    for line in upstream_messages.lines(how, asked):
        piece = assembler.feed(line)
        text += piece.text if piece else ""
    return text, assembler


def test_an_answer_with_tools_and_figures() -> None:
    how = Behaviour(text="I will look", tool_calls=(("look", '{"q": [1, 2]}'), ("stop", "")))
    text, assembler = read(how)
    answer = assembler.complete()
    assert text == "I will look"
    assert assembler.finished
    assert assembler.ended
    assert answer.finish is FinishReason.TOOL_CALLS
    assert [(c.name, json.loads(c.arguments)) for c in answer.tool_calls] == [
        ("look", {"q": [1, 2]}),
        ("stop", {}),
    ]
    assert answer.tokens is not None
    assert (answer.tokens.output, answer.tokens.cached_input) == (
        3,
        upstream_messages.CACHED_TOKENS,
    )
    assert answer.tokens.input > upstream_messages.CACHED_TOKENS


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
        ("max_tokens", FinishReason.LENGTH),
        ("model_context_window_exceeded", FinishReason.LENGTH),
        ("tool_use", FinishReason.TOOL_CALLS),
        ("refusal", FinishReason.CONTENT_FILTER),
        ("something_new", FinishReason.STOP),
    ],
)
def test_stop_reasons(reason: str, finish: FinishReason) -> None:
    assert read(Behaviour(finish_reason=reason))[1].complete().finish is finish


def test_no_figures_where_none_were_told() -> None:
    assert read(Behaviour(usage="none"))[1].complete().tokens is None


def test_later_figures_take_the_place_of_earlier_ones() -> None:
    assembler = MessageAssembler("m")
    assembler.feed('{"type": "message_start", "message": {"usage": {"input_tokens": 5}}}')
    for count in (4, 9):
        usage = {"output_tokens": count, "input_tokens": 6}
        assembler.feed(json.dumps({"type": "message_delta", "delta": {}, "usage": usage}))
    assert assembler.complete().tokens == Tokens(6, 0, 9)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("overloaded_error", UpstreamOverloaded),
        ("rate_limit_error", UpstreamOverloaded),
        ("api_error", UpstreamOverloaded),
        ("timeout_error", UpstreamOverloaded),
        ("invalid_request_error", UpstreamRefused),
        ("request_too_large", UpstreamRefused),
        ("authentication_error", UpstreamMisconfigured),
        ("billing_error", UpstreamMisconfigured),
        ("not_found_error", UpstreamMisconfigured),
        ("new_error", UpstreamError),
    ],
)
def test_errors_inside(code: str, kind: type[UpstreamError]) -> None:
    with pytest.raises(kind) as caught:
        read(Behaviour(error_after=2, error_code=code))
    assert type(caught.value) is kind
    assert "leaked-key" not in caught.value.message


def test_unknown_events_and_blocks_are_passed_over() -> None:
    assembler = MessageAssembler("m")
    for event in (
        {"type": "brand_new"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta"}},
    ):
        assert assembler.feed(json.dumps(event)) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
kinds = ["message_start", "content_block_start", "content_block_delta", "message_delta"]


@given(
    st.text(max_size=30)
    | st.fixed_dictionaries(
        {"type": st.sampled_from(kinds)},
        optional={
            "message": json_values,
            "index": json_values,
            "content_block": json_values,
            "delta": json_values,
            "usage": json_values,
        },
    ).map(json.dumps)
)
def test_strange_events_are_malformed_and_nothing_else(data: str) -> None:
    with contextlib.suppress(UpstreamMalformed):
        MessageAssembler("m").feed(data)
