"""Puts the events of Anthropic's Messages API together: what comes back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from services.cloud_proxy.policy.cost import Tokens
from services.cloud_proxy.providers.base import Completion, Piece
from services.cloud_proxy.providers.chunks import MAX_TOOL_CALLS, UNREADABLE
from services.cloud_proxy.providers.failures import error_in_body
from services.cloud_proxy.request import ToolCall
from services.common.errors import UpstreamMalformed
from services.common.vocabulary import FinishReason

_FINISH = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "pause_turn": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALLS,
    "refusal": FinishReason.CONTENT_FILTER,
}
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: str = ""


class MessageAssembler:
    """Takes the data of events in order; see `Assembler`.

    Kinds of events and blocks that it does not know are passed over, as the API asks of
    its clients.
    """

    def __init__(self, model: str) -> None:
        self.finished = False
        self.ended = False
        self._model = model
        self._finish = FinishReason.STOP
        self._calls: dict[int, _Call] = {}
        self._usage: dict[str, int] = {}

    def feed(self, data: str) -> Piece | None:
        """Reads one event; a piece where the answer grew.

        Raises:
            UpstreamMalformed: No JSON, or not of this protocol.
            UpstreamError: The event is an error.
        """
        try:
            event = json.loads(data)
            if not isinstance(event, dict):
                raise UpstreamMalformed("the provider sent an event that is no object")
            if event.get("error"):
                raise error_in_body(event)
            return self._read(event)
        except UNREADABLE as exc:
            # The event may quote the prompt: it is not passed on.
            raise UpstreamMalformed("the provider sent an event that cannot be read") from exc

    def complete(self) -> Completion:
        """The whole answer."""
        calls = tuple(
            ToolCall(call.id, call.name, call.arguments or "{}")
            for _, call in sorted(self._calls.items())
        )
        return Completion(self._model, self._finish, calls, self._tokens(), None)

    def _read(self, event: dict[str, Any]) -> Piece | None:
        kind = event["type"]
        if kind == "message_start":
            message = event["message"]
            self._model = str(message.get("model") or self._model)
            # Its output tokens are only those so far: the last event counts them.
            self._count(message.get("usage") or {}, _INPUT)
        elif kind == "content_block_start":
            return self._begin(int(event["index"]), event["content_block"])
        elif kind == "content_block_delta":
            return self._grow(int(event["index"]), event["delta"])
        elif kind == "message_delta":
            self._count(event.get("usage") or {}, (*_INPUT, "output_tokens"))
            reason = event["delta"].get("stop_reason")
            if reason:
                self.finished = True
                self._finish = _FINISH.get(str(reason), FinishReason.STOP)
        elif kind == "message_stop":
            self.ended = True
        return None

    def _begin(self, index: int, block: dict[str, Any]) -> Piece | None:
        if block["type"] == "tool_use":
            if len(self._calls) >= MAX_TOOL_CALLS:
                raise ValueError("too many tool calls")
            self._calls[index] = _Call(str(block["id"]), str(block["name"]))
            return Piece(self._model, "")
        return self._text(block.get("text")) if block["type"] == "text" else None

    def _grow(self, index: int, delta: dict[str, Any]) -> Piece | None:
        if delta["type"] == "input_json_delta" and index in self._calls:
            self._calls[index].arguments += str(delta["partial_json"])
        return self._text(delta["text"]) if delta["type"] == "text_delta" else None

    def _text(self, text: Any) -> Piece | None:
        if text is not None and not isinstance(text, str):
            raise TypeError("text")
        return Piece(self._model, text) if text else None

    def _count(self, usage: dict[str, Any], fields: tuple[str, ...]) -> None:
        """Figures are totals, not additions."""
        told = {name: max(0, int(usage[name])) for name in fields if usage.get(name) is not None}
        self._usage.update(told)

    def _tokens(self) -> Tokens | None:
        if "output_tokens" not in self._usage or "input_tokens" not in self._usage:
            return None
        return Tokens(
            input=sum(self._usage.get(name, 0) for name in _INPUT),
            cached_input=self._usage.get("cache_read_input_tokens", 0),
            output=self._usage["output_tokens"],
        )
