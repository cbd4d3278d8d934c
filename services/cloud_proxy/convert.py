"""Checks requests and converts them; the only place that knows the wire format of prompts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from services.cloud_proxy.request import (
    ChatRequest,
    Output,
    Role,
    Sampling,
    Tier,
    Tool,
    ToolCall,
    Turn,
)
from services.common.errors import InvalidField
from tandem.cloud.v1 import cloud_pb2
from tandem.common.v1 import chat_pb2

_TIERS = {cloud_pb2.TIER_SMALL: Tier.SMALL, cloud_pb2.TIER_LARGE: Tier.LARGE}
_ROLES = {
    chat_pb2.ROLE_USER: Role.USER,
    chat_pb2.ROLE_ASSISTANT: Role.ASSISTANT,
    chat_pb2.ROLE_TOOL: Role.TOOL,
}
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAX_STOPS, _MAX_STOP_CHARS = 8, 128


def read_request(message: cloud_pb2.GenerateRequest) -> ChatRequest[str]:
    """A checked request.

    Raises:
        InvalidField: Names the field and its rule.
    """
    if message.tier not in _TIERS:
        raise InvalidField("tier", "must be TIER_SMALL or TIER_LARGE")
    if not message.messages:
        raise InvalidField("messages", "needs at least one turn")
    if message.max_output_tokens < 0:
        raise InvalidField("max_output_tokens", "must be 0 or more")
    return ChatRequest(
        tier=_TIERS[message.tier],
        system=message.system,
        few_shot=_turns("few_shot", message.few_shot),
        messages=_turns("messages", message.messages),
        tools=tuple(_tool(f"tools[{i}]", tool) for i, tool in enumerate(message.tools)),
        output=_output(message.output),
        sampling=_sampling(message.sampling),
        max_output_tokens=message.max_output_tokens,
    )


def _turns(path: str, turns: Sequence[chat_pb2.Message]) -> tuple[Turn[str], ...]:
    return tuple(_turn(f"{path}[{i}]", turn) for i, turn in enumerate(turns))


def _turn(path: str, turn: chat_pb2.Message) -> Turn[str]:
    if turn.role not in _ROLES:
        raise InvalidField(f"{path}.role", "must be ROLE_USER, ROLE_ASSISTANT or ROLE_TOOL")
    role = _ROLES[turn.role]
    if turn.tool_calls and role is not Role.ASSISTANT:
        raise InvalidField(f"{path}.tool_calls", "only for ROLE_ASSISTANT")
    if bool(turn.tool_call_id) != (role is Role.TOOL):
        raise InvalidField(f"{path}.tool_call_id", "for ROLE_TOOL, and only then")
    calls = tuple(_call(f"{path}.tool_calls[{i}]", call) for i, call in enumerate(turn.tool_calls))
    return Turn(role, turn.content, calls, turn.tool_call_id)


def _call(path: str, call: chat_pb2.ToolCall) -> ToolCall[str]:
    _check_tool_name(f"{path}.name", call.name)
    return ToolCall(call.id, call.name, call.arguments_json)


def _tool(path: str, tool: chat_pb2.Tool) -> Tool[str]:
    _check_tool_name(f"{path}.name", tool.name)
    if tool.parameters_json_schema:
        _check_object(f"{path}.parameters_json_schema", tool.parameters_json_schema)
    return Tool(tool.name, tool.description, tool.parameters_json_schema)


def _output(output: chat_pb2.OutputContract) -> Output[str]:
    form = output.WhichOneof("form")
    if form == "labels":
        labels = tuple(output.labels.values)
        if len(labels) < 2 or len(set(labels)) != len(labels) or not all(labels):
            raise InvalidField("output.labels.values", "needs at least two different labels")
        return Output(labels=labels)
    if form == "json_schema":
        _check_object("output.json_schema", output.json_schema)
        return Output(json_schema=output.json_schema)
    if form == "regex":
        if not output.regex:
            raise InvalidField("output.regex", "must not be empty")
        return Output(regex=output.regex)
    return Output()


def _sampling(sampling: chat_pb2.Sampling) -> Sampling[str]:
    temperature = _given(sampling, "temperature")
    top_p = _given(sampling, "top_p")
    top_k = _given(sampling, "top_k")
    if temperature is not None and not 0.0 <= temperature <= 2.0:
        raise InvalidField("sampling.temperature", "must be from 0 to 2")
    if top_p is not None and not 0.0 < top_p <= 1.0:
        raise InvalidField("sampling.top_p", "must be above 0 and at most 1")
    if top_k is not None and top_k < 0:
        raise InvalidField("sampling.top_k", "must be 0 or more")
    stop = tuple(sampling.stop)
    if len(stop) > _MAX_STOPS or any(not 0 < len(s) <= _MAX_STOP_CHARS for s in stop):
        rule = f"at most {_MAX_STOPS} of 1 to {_MAX_STOP_CHARS} characters"
        raise InvalidField("sampling.stop", rule)
    return Sampling(temperature, top_p, top_k, _given(sampling, "seed"), stop)


def _given(message: chat_pb2.Sampling, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None  # type: ignore[arg-type]


def _check_tool_name(path: str, name: str) -> None:
    if not _TOOL_NAME.fullmatch(name):
        raise InvalidField(path, "must match [a-zA-Z0-9_-]{1,64}")


def _check_object(path: str, text: str) -> None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidField(path, "must be a JSON object")
