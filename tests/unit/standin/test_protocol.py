"""Request bodies as clients of such endpoints send them."""

from __future__ import annotations

from typing import Any

import pytest

from cli.standin.protocol import read_prompt
from services.common.errors import InvalidField

USER = {"role": "user", "content": "Hi"}


def test_roles_parts_and_numbers() -> None:
    prompt = read_prompt(
        {
            "messages": [
                {"role": "system", "content": "A"},
                {"role": "developer", "content": [{"type": "text", "text": "B"}]},
                USER,
                {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
                {"role": "tool", "content": "4", "tool_call_id": "c"},
            ],
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 3,
            "stop": "END",
            "max_completion_tokens": 9,
            "response_format": {"type": "json_object"},
        }
    )
    assert prompt.system == "A\n\nB"
    assert [turn.role for turn in prompt.turns] == ["user", "assistant", "tool"]
    assert (prompt.sampling.temperature, prompt.sampling.top_p) == (0.5, 0.9)
    assert (prompt.seed, prompt.stops, prompt.max_tokens) == (3, ("END",), 9)


def test_absent_fields() -> None:
    prompt = read_prompt({"messages": [USER]})
    assert (prompt.sampling.temperature, prompt.seed, prompt.max_tokens) == (0.0, None, 0)
    assert read_prompt({"messages": [USER], "max_tokens": 10**9}).max_tokens == 2_048


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"messages": ["x"]}, "messages[0].role"),
        ({"messages": [{"role": "judge", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "x" * 70_000}]}, "messages"),
        ({"messages": [USER], "temperature": 3}, "temperature"),
        ({"messages": [USER], "temperature": True}, "temperature"),
        ({"messages": [USER], "top_p": 0}, "top_p"),
        ({"messages": [USER], "stop": ["a"] * 9}, "stop"),
        ({"messages": [USER], "stop": [""]}, "stop"),
    ],
)
def test_what_breaks_a_rule(body: Any, field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        read_prompt(body)
    assert caught.value.field == field
