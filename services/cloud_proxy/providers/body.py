"""Writes a cleared request as the JSON body of `/chat/completions`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from services.cloud_proxy.redaction.cleared import ClearedRequest, ClearedText
from services.cloud_proxy.request import Output, Role, Tool, Turn


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where OpenAI-compatible endpoints differ.

    Attributes:
        model: As the provider names it.
        max_output_tokens: The tier's cap.
        max_tokens_field: `max_tokens`, or `max_completion_tokens` for newer models.
        top_k: Whether the field `top_k` is known.
        logprobs: Whether log-probabilities are asked for.
        sampling: Whether temperature, top_p and top_k are sent.
    """

    model: str
    max_output_tokens: int
    max_tokens_field: str = "max_tokens"
    top_k: bool = False
    logprobs: bool = False
    sampling: bool = True


def write_body(request: ClearedRequest, dialect: Dialect) -> dict[str, Any]:
    """The body of a streamed call that asks for usage."""
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": dialect.model,
        "messages": _messages(request),
        "stream": True,
        "stream_options": {"include_usage": True},
        dialect.max_tokens_field: output_cap(request, dialect),
        "temperature": sampling.temperature if dialect.sampling else None,
        "top_p": sampling.top_p if dialect.sampling else None,
        "seed": sampling.seed,
        "stop": [stop.text for stop in sampling.stop] or None,
        "tools": [_tool(tool) for tool in request.tools] or None,
        "response_format": _response_format(request.output),
        "top_k": sampling.top_k if dialect.top_k and dialect.sampling else None,
        "logprobs": dialect.logprobs or None,
    }
    return {name: value for name, value in body.items() if value is not None}


def output_cap(request: ClearedRequest, dialect: Dialect) -> int:
    """The most tokens of this answer."""
    cap, asked = dialect.max_output_tokens, request.max_output_tokens
    return min(asked, cap) if asked > 0 else cap


def _messages(request: ClearedRequest) -> list[dict[str, Any]]:
    system = "\n\n".join(part for part in (request.system.text, say_form(request.output)) if part)
    head = [{"role": "system", "content": system}] if system else []
    return head + [_message(turn) for turn in (*request.few_shot, *request.messages)]


def _message(turn: Turn[ClearedText]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.role.value, "content": turn.content.text}
    if turn.role is Role.TOOL:
        message["tool_call_id"] = turn.tool_call_id.text
    if turn.tool_calls:
        message["content"] = turn.content.text or None
        message["tool_calls"] = [
            {
                "id": call.id.text,
                "type": "function",
                "function": {"name": call.name.text, "arguments": call.arguments.text},
            }
            for call in turn.tool_calls
        ]
    return message


def _tool(tool: Tool[ClearedText]) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name.text, "description": tool.description.text}
    if tool.parameters.text:
        function["parameters"] = json.loads(tool.parameters.text)
    return {"type": "function", "function": function}


def say_form(output: Output[ClearedText]) -> str:
    """Providers have no field for labels and expressions: it is said in words."""
    if output.labels:
        labels = ", ".join(json.dumps(label.text, ensure_ascii=False) for label in output.labels)
        return f"Answer with exactly one of these labels and nothing else: {labels}"
    if output.regex is not None:
        return f"The whole answer must match this regular expression: {output.regex.text}"
    return ""


def _response_format(output: Output[ClearedText]) -> dict[str, Any] | None:
    if output.json_schema is None:
        return None
    schema = {"name": "answer", "schema": json.loads(output.json_schema.text)}
    return {"type": "json_schema", "json_schema": schema}
