"""How Anthropic's Messages API is spoken, version 2023-06-01: what is sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from services.cloud_proxy.providers.body import Dialect, output_cap, say_form
from services.cloud_proxy.providers.http import Wire
from services.cloud_proxy.providers.messages import MessageAssembler
from services.cloud_proxy.redaction.cleared import ClearedRequest, ClearedText
from services.cloud_proxy.request import Output, Role, Tool, ToolCall, Turn
from services.common.errors import InvalidField

VERSION = "2023-06-01"
_ROLES = {Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: "user"}
# The API takes 0 to 1, others to 2.
_MAX_TEMPERATURE = 1.0


def anthropic_wire(dialect: Dialect, api_key: str) -> Wire:
    """The wire of one model."""
    headers = {"anthropic-version": VERSION}
    return Wire(
        path="/messages",
        write=partial(write_message, dialect=dialect),
        assembler=partial(MessageAssembler, dialect.model),
        headers={**headers, "x-api-key": api_key} if api_key else headers,
    )


def write_message(request: ClearedRequest, dialect: Dialect) -> dict[str, Any]:
    """The body of a streamed call; a seed has no field there.

    Raises:
        InvalidField: A tool call in the conversation has arguments that are no object.
    """
    body: dict[str, Any] = {
        "model": dialect.model,
        "max_tokens": output_cap(request, dialect),
        "stream": True,
        "system": _system(request) or None,
        "messages": _messages((*request.few_shot, *request.messages)),
        "stop_sequences": [stop.text for stop in request.sampling.stop] or None,
        "tools": [_tool(tool) for tool in request.tools] or None,
        **_sampling(request, dialect),
    }
    return {name: value for name, value in body.items() if value is not None}


def _sampling(request: ClearedRequest, dialect: Dialect) -> dict[str, Any]:
    """Temperature, or else top_p: some models refuse both together."""
    if not dialect.sampling:
        return {}
    sampling = request.sampling
    top_k = sampling.top_k or None if dialect.top_k else None
    if sampling.temperature is None:
        return {"top_p": sampling.top_p, "top_k": top_k}
    return {"temperature": min(sampling.temperature, _MAX_TEMPERATURE), "top_k": top_k}


def _system(request: ClearedRequest) -> str:
    parts = (request.system.text, say_form(request.output), _schema(request.output))
    return "\n\n".join(part for part in parts if part)


def _schema(output: Output[ClearedText]) -> str:
    """In words: the API's own field takes only some schemas, and not on every model."""
    if output.json_schema is None:
        return ""
    rule = "The whole answer must be JSON, with nothing around it, that fits this JSON schema: "
    return rule + output.json_schema.text


def _messages(turns: Sequence[Turn[ClearedText]]) -> list[dict[str, Any]]:
    """Users and assistants in turn: neighbours of one role become one message.

    Results of tools come first in theirs, as the API wants it.
    """
    messages: list[dict[str, Any]] = []
    for turn in turns:
        role, blocks = _ROLES[turn.role], _blocks(turn)
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    for message in messages:
        message["content"].sort(key=lambda block: block["type"] != "tool_result")
    return messages


def _blocks(turn: Turn[ClearedText]) -> list[dict[str, Any]]:
    """An empty text may not be a block."""
    text = turn.content.text
    if turn.role is Role.TOOL:
        result = {"type": "tool_result", "tool_use_id": turn.tool_call_id.text, "content": text}
        return [result]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
    return blocks + [_call(call) for call in turn.tool_calls]


def _call(call: ToolCall[ClearedText]) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call.id.text,
        "name": call.name.text,
        "input": _object(call.arguments.text),
    }


def _object(arguments: str) -> dict[str, Any]:
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidField("messages.tool_calls.arguments_json", "must be a JSON object")
    return value


def _tool(tool: Tool[ClearedText]) -> dict[str, Any]:
    schema = json.loads(tool.parameters.text) if tool.parameters.text else {}
    written = {"name": tool.name.text, "input_schema": {"type": "object", **schema}}
    return {**written, "description": tool.description.text} if tool.description.text else written
