"""The fake upstream's answers in the form of Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.fakes.upstream_script import Behaviour

CACHED_TOKENS = 3
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}


def wrong(body: dict[str, Any], headers: dict[str, str]) -> str:
    """What the API would refuse; empty: nothing."""
    if "anthropic-version" not in headers:
        return "anthropic-version"
    if not isinstance(body.get("max_tokens"), int):
        return "max_tokens"
    roles = [message["role"] for message in body["messages"]]
    if not roles or set(roles) - {"user", "assistant"}:
        return "messages.role"
    blocks = [block for message in body["messages"] for block in message["content"]]
    return "empty text" if any(block.get("text") == "" for block in blocks) else ""


def error_body(how: Behaviour) -> dict[str, Any]:
    """An error object that repeats what must never be passed on."""
    error = {"type": how.error_code, "message": "fake failure, key=leaked-key"}
    return {"type": "error", "error": error}


def lines(how: Behaviour, body: dict[str, Any]) -> Iterator[str]:
    """The data of all events; `with_choices` is told like `own_chunk`."""
    for number, event in enumerate(_events(how, body)):
        line = json.dumps(event)
        if number == how.bad_json_after:
            yield line[: len(line) // 2]
        elif number == how.error_after:
            yield json.dumps(error_body(how))
        else:
            yield line


def _events(how: Behaviour, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    told = how.usage != "none"
    usage = {
        "input_tokens": len(str(body["messages"]).split()),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": CACHED_TOKENS,
        "output_tokens": 1,
    }
    model = how.model or str(body.get("model", "fake"))
    message = {"id": "msg_fake", "type": "message", "role": "assistant", "model": model}
    yield {"type": "message_start", "message": {**message, "content": [], "usage": usage}}
    yield _start(0, {"type": "text", "text": ""})
    yield {"type": "ping"}
    text = _last_text(body) if how.echo else how.text
    for place, word in enumerate(text.split(" ") if text else ()):
        piece = " " + word if place else word
        yield _delta(0, {"type": "text_delta", "text": piece})
    yield {"type": "content_block_stop", "index": 0}
    for index, (name, arguments) in enumerate(how.tool_calls, start=1):
        yield _start(index, {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}})
        half = len(arguments) // 2
        for part in (arguments[:half], arguments[half:]):
            yield _delta(index, {"type": "input_json_delta", "partial_json": part})
        yield {"type": "content_block_stop", "index": index}
    if how.finish_reason:
        reason = _STOP_REASONS.get(how.finish_reason, how.finish_reason)
        if how.tool_calls and reason == "end_turn":
            reason = "tool_use"
        count = {"output_tokens": len(text.split())}
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, **({"usage": count} if told else {})}
    if how.done:
        yield {"type": "message_stop"}


def _start(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _last_text(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"][-1].get("text", ""))
