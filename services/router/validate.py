"""Checks of a request's fields: each error names the field and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from services.common.contract import AnswerCheck, AnyText, check_labels, check_pattern, check_schema
from services.common.errors import InvalidField
from services.router.config import RequestLimits
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2

_ROLES = {
    chat_pb2.ROLE_USER: "ROLE_USER",
    chat_pb2.ROLE_ASSISTANT: "ROLE_ASSISTANT",
    chat_pb2.ROLE_TOOL: "ROLE_TOOL",
}
_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_MAX_STOPS = 8
_MAX_STOP_CHARS = 128
_MAX_NAME_CHARS = 128


def check_request(request: router_pb2.RouteRequest, limits: RequestLimits) -> AnswerCheck:
    """Checks every field and returns the check that answers must pass.

    Raises:
        InvalidField: The first field that breaks its rule.
    """
    _check_messages(request, limits)
    _check_sizes(request, limits)
    _check_numbers(request, limits)
    _check_enums(request)
    _check_tools(request, limits)
    _check_sampling(request.sampling)
    return _check_output(request.output)


def text_fields(request: router_pb2.RouteRequest) -> Iterator[tuple[str, str]]:
    """Every text field of a request with its path: what is bounded, and what is screened."""
    yield "system", request.system
    for name, turns in (("messages", request.messages), ("few_shot", request.few_shot)):
        for index, turn in enumerate(turns):
            yield f"{name}[{index}].content", turn.content
            for number, call in enumerate(turn.tool_calls):
                yield f"{name}[{index}].tool_calls[{number}].arguments_json", call.arguments_json
    for key, value in request.slots.items():
        yield "slots (a name)", key
        yield f"slots[{key[:40]}]", value
    for index, snippet in enumerate(request.snippets):
        yield f"snippets[{index}].text", snippet.text
    for index, tool in enumerate(request.tools):
        yield f"tools[{index}].description", tool.description
        yield f"tools[{index}].parameters_json_schema", tool.parameters_json_schema
    yield from _output_texts(request.output)
    for index, stop in enumerate(request.sampling.stop):
        yield f"sampling.stop[{index}]", stop


def _output_texts(output: chat_pb2.OutputContract) -> Iterator[tuple[str, str]]:
    for index, label in enumerate(output.labels.values):
        yield f"output.labels.values[{index}]", label
    yield "output.json_schema", output.json_schema
    yield "output.regex", output.regex


def _check_messages(request: router_pb2.RouteRequest, limits: RequestLimits) -> None:
    if not 1 <= len(request.messages) <= limits.max_messages:
        raise InvalidField("messages", f"must hold from 1 to {limits.max_messages} messages")
    for name, turns in (("messages", request.messages), ("few_shot", request.few_shot)):
        for index, turn in enumerate(turns):
            if turn.role not in _ROLES:
                allowed = ", ".join(_ROLES.values())
                raise InvalidField(f"{name}[{index}].role", f"must be one of {allowed}")
            if not turn.content.strip() and not turn.tool_calls:
                raise InvalidField(f"{name}[{index}].content", "must not be empty")
    if request.messages[-1].role == chat_pb2.ROLE_ASSISTANT:
        raise InvalidField("messages", "the last turn must be the user's or a tool's")


def _check_sizes(request: router_pb2.RouteRequest, limits: RequestLimits) -> None:
    total = 0
    for field, text in text_fields(request):
        if len(text) > limits.max_text_chars:
            raise InvalidField(field, f"must be at most {limits.max_text_chars} characters")
        total += len(text)
    if total > limits.max_total_chars:
        raise InvalidField("request", f"all text: at most {limits.max_total_chars} characters")
    for field in ("task_type", "intent", "channel", "session_id"):
        value: str = getattr(request, field)
        if len(value) > _MAX_NAME_CHARS or not value.isprintable():
            raise InvalidField(field, f"must be at most {_MAX_NAME_CHARS} printable characters")


def _check_numbers(request: router_pb2.RouteRequest, limits: RequestLimits) -> None:
    if not 0 <= request.max_output_tokens <= limits.max_output_tokens:
        raise InvalidField(
            "max_output_tokens", f"must be from 0 (the policy's cap) to {limits.max_output_tokens}"
        )
    if request.ttft_budget_ms < 0:
        raise InvalidField("ttft_budget_ms", "must be 0 (the tenant's default) or more")
    if len(request.snippets) > limits.max_snippets:
        raise InvalidField("snippets", f"must hold at most {limits.max_snippets} snippets")
    for index, snippet in enumerate(request.snippets):
        if not 0.0 <= snippet.score <= 1.0:
            raise InvalidField(f"snippets[{index}].score", "must be from 0 to 1")


def _check_enums(request: router_pb2.RouteRequest) -> None:
    """Proto enums are open: a newer client may send a value that we do not know."""
    for field, kind in (
        ("privacy_hint", router_pb2.PrivacyHint),
        ("tier_preference", router_pb2.TierPreference),
        ("stream_mode", router_pb2.StreamMode),
    ):
        if getattr(request, field) not in kind.values():
            raise InvalidField(field, f"must be one of {', '.join(kind.keys())}")


def _check_tools(request: router_pb2.RouteRequest, limits: RequestLimits) -> None:
    if len(request.tools) > limits.max_tools:
        raise InvalidField("tools", f"must hold at most {limits.max_tools} tools")
    for index, tool in enumerate(request.tools):
        if not _TOOL_NAME.match(tool.name):
            raise InvalidField(f"tools[{index}].name", f"must match {_TOOL_NAME.pattern}")
        if tool.parameters_json_schema:
            check_schema(f"tools[{index}].parameters_json_schema", tool.parameters_json_schema)


def _check_sampling(sampling: chat_pb2.Sampling) -> None:
    if not 0.0 <= sampling.temperature <= 2.0:
        raise InvalidField("sampling.temperature", "must be from 0 to 2")
    if sampling.HasField("top_p") and not 0.0 < sampling.top_p <= 1.0:
        raise InvalidField("sampling.top_p", "must be above 0 and at most 1")
    if sampling.top_k < 0:
        raise InvalidField("sampling.top_k", "must be 0 (all) or more")
    if len(sampling.stop) > _MAX_STOPS:
        raise InvalidField("sampling.stop", f"must hold at most {_MAX_STOPS} strings")
    for index, stop in enumerate(sampling.stop):
        if not 0 < len(stop) <= _MAX_STOP_CHARS:
            raise InvalidField(
                f"sampling.stop[{index}]", f"must have 1 to {_MAX_STOP_CHARS} characters"
            )


def _check_output(output: chat_pb2.OutputContract) -> AnswerCheck:
    form = output.WhichOneof("form")
    if form == "labels":
        return check_labels("output.labels.values", list(output.labels.values))
    if form == "json_schema":
        return check_schema("output.json_schema", output.json_schema)
    if form == "regex":
        return check_pattern("output.regex", output.regex)
    return AnyText()
