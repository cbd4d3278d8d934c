"""The OpenAI-compatible wire format: reads request bodies, writes chunks and answers."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from cli.standin.generator import Ended, Prompt, Text
from services.common.errors import InvalidField
from services.common.vocabulary import FinishReason
from services.edge_worker.chat_template import Role, Turn
from services.edge_worker.sampling import SamplingParams

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}
_SYSTEM_ROLES = ("system", "developer")
_FINISH = {FinishReason.STOP: "stop", FinishReason.LENGTH: "length"}
_MAX_TOKENS = 2_048
_MAX_MESSAGES = 256
_MAX_TEXT_CHARS = 64_000


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who answers: repeated in every chunk.

    Attributes:
        id: Of this answer.
        model: Name that says stand-in.
        fingerprint: The weights.
        created: Unix seconds.
    """

    id: str
    model: str
    fingerprint: str
    created: int

    @classmethod
    def new(cls, request_id: str, model: str, model_id: str) -> Answerer:
        """For one answer."""
        return cls(f"standin-{request_id}", model, f"standin-{model_id}", int(time.time()))


def read_prompt(body: Any) -> Prompt:
    """A checked prompt; fields that this model cannot honour are ignored.

    Raises:
        InvalidField: Names the field and its rule.
    """
    if not isinstance(body, dict):
        raise InvalidField("body", "must be a JSON object")
    messages = body.get("messages")
    if not isinstance(messages, list) or not 0 < len(messages) <= _MAX_MESSAGES:
        raise InvalidField("messages", f"must be a list of 1 to {_MAX_MESSAGES}")
    system, turns = _split(messages)
    if len(system) + sum(len(turn.text) for turn in turns) > _MAX_TEXT_CHARS:
        raise InvalidField("messages", f"at most {_MAX_TEXT_CHARS} characters together")
    asked = body.get("max_completion_tokens") or body.get("max_tokens") or 0
    seed = body.get("seed")
    return Prompt(
        system=system,
        turns=turns,
        sampling=SamplingParams(
            temperature=_number(body, "temperature", 0.0, 0.0, 2.0),
            top_p=_number(body, "top_p", 1.0, 1e-6, 1.0),
            top_k=int(_number(body, "top_k", 0, 0, 1e6)),
        ),
        seed=seed if isinstance(seed, int) else None,
        stops=_stops(body.get("stop")),
        max_tokens=min(asked, _MAX_TOKENS) if isinstance(asked, int) and asked > 0 else 0,
        logprobs=body.get("logprobs") is True,
    )


def chunk(who: Answerer, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One chunk of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**_head(who, "chat.completion.chunk"), "choices": [choice]}


def text_chunk(who: Answerer, piece: Text) -> dict[str, Any]:
    """A chunk with text."""
    made = chunk(who, {"content": piece.text})
    if piece.logprobs:
        # Tokens are parts of characters here: only the figures are told.
        made["choices"][0]["logprobs"] = {"content": _logprobs(piece.logprobs)}
    return made


def last_chunks(who: Answerer, ended: Ended, include_usage: bool) -> list[dict[str, Any]]:
    """The chunk with the finish reason, and the one with usage where asked for."""
    last = [chunk(who, {}, _FINISH.get(ended.reason, "stop"))]
    if include_usage:
        head = _head(who, "chat.completion.chunk")
        last.append({**head, "choices": [], "usage": usage(ended)})
    return last


def completion(who: Answerer, text: str, ended: Ended) -> dict[str, Any]:
    """An answer in one piece."""
    message = {"role": "assistant", "content": text}
    finish = _FINISH.get(ended.reason, "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**_head(who, "chat.completion"), "choices": [choice], "usage": usage(ended)}


def usage(ended: Ended) -> dict[str, int]:
    """Tokens of an answer."""
    total = ended.input_tokens + ended.output_tokens
    return {
        "prompt_tokens": ended.input_tokens,
        "completion_tokens": ended.output_tokens,
        "total_tokens": total,
    }


def error_body(message: str, code: str) -> dict[str, Any]:
    """An error object."""
    return {"error": {"message": message, "type": code, "code": code}}


def _head(who: Answerer, kind: str) -> dict[str, Any]:
    return {
        "id": who.id,
        "object": kind,
        "created": who.created,
        "model": who.model,
        "system_fingerprint": who.fingerprint,
    }


def _logprobs(values: tuple[float, ...]) -> list[dict[str, Any]]:
    return [{"token": "", "logprob": value, "bytes": None, "top_logprobs": []} for value in values]


def _split(messages: list[Any]) -> tuple[str, tuple[Turn, ...]]:
    """System text wherever it stands, and the turns."""
    system: list[str] = []
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        text = _content(f"messages[{index}]", message) if role else ""
        if role in _SYSTEM_ROLES:
            system.append(text)
        elif role in _ROLES:
            turns.append(Turn(_ROLES[str(role)], text))
        else:
            raise InvalidField(f"messages[{index}].role", "must be system, user, assistant or tool")
    if not turns:
        raise InvalidField("messages", "needs a turn besides the system's")
    return "\n\n".join(system), tuple(turns)


def _content(path: str, message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    if content is None and message.get("tool_calls"):
        content = json.dumps(message["tool_calls"], ensure_ascii=False)
    if not isinstance(content, str) or not content:
        raise InvalidField(f"{path}.content", "must be non-empty text")
    return content


def _number(body: dict[str, Any], name: str, absent: float, low: float, high: float) -> float:
    value = body.get(name)
    if value is None:
        return absent
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidField(name, f"must be from {low:g} to {high:g}")
    return float(value)


def _stops(value: Any) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else value or []
    if not isinstance(stops, list) or len(stops) > 8:
        raise InvalidField("stop", "must be text or a list of at most 8")
    if not all(isinstance(stop, str) and 0 < len(stop) <= 128 for stop in stops):
        raise InvalidField("stop", "must be of 1 to 128 characters")
    return tuple(stops)
