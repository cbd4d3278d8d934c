"""The body that goes to an OpenAI-compatible endpoint."""

from __future__ import annotations

from typing import Any

from services.cloud_proxy.providers.body import Dialect, write_body
from services.cloud_proxy.redaction.gate import Gate, Rule
from services.cloud_proxy.request import Output, Role, Sampling, Tool, ToolCall, Turn
from services.common.pii.detector import StructuredDetector
from tests.unit.cloud_proxy.requests import request


async def body(dialect: Dialect | None = None, **changes: Any) -> dict[str, Any]:
    cleared = await Gate(StructuredDetector(), Rule.REFUSE).clear(request(**changes))
    return write_body(cleared.request, dialect or Dialect("m", 800))


async def test_the_least_request() -> None:
    assert await body() == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 800,
    }


async def test_cap_and_dialect() -> None:
    dialect = Dialect("m", 800, max_tokens_field="max_completion_tokens", top_k=True, logprobs=True)
    made = await body(dialect, max_output_tokens=20, sampling=Sampling(top_k=5))
    assert (made["max_completion_tokens"], made["top_k"], made["logprobs"]) == (20, 5, True)
    assert "max_tokens" not in made
    assert "top_k" not in await body(sampling=Sampling(top_k=5))
    assert (await body(max_output_tokens=5_000))["max_tokens"] == 800


async def test_tools_and_their_turns() -> None:
    call = ToolCall("c1", "add", '{"a": 1}')
    turns = (
        Turn(Role.USER, "1+1?", (), ""),
        Turn(Role.ASSISTANT, "", (call,), ""),
        Turn(Role.TOOL, "2", (), "c1"),
    )
    made = await body(messages=turns, tools=(Tool("add", "adds", '{"type": "object"}'),))
    assert made["messages"][1]["content"] is None
    assert made["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"a": 1}'
    assert made["messages"][2] == {"role": "tool", "content": "2", "tool_call_id": "c1"}
    assert made["tools"][0]["function"]["parameters"] == {"type": "object"}


async def test_forms_of_the_answer() -> None:
    schema = await body(output=Output(json_schema='{"type": "object"}'))
    assert schema["response_format"]["json_schema"]["schema"] == {"type": "object"}
    labels = await body(system="Be kind.", output=Output(labels=("yes", "no")))
    assert labels["messages"][0]["content"].startswith("Be kind.\n\n")
    assert '"yes", "no"' in labels["messages"][0]["content"]
    regex = await body(output=Output(regex="[a-z]+"))
    assert "[a-z]+" in regex["messages"][0]["content"]
