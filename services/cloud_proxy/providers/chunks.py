"""Puts the chunks of an OpenAI-compatible stream together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from services.cloud_proxy.policy.cost import Tokens
from services.cloud_proxy.providers.base import Completion, Piece
from services.cloud_proxy.providers.failures import error_in_body
from services.cloud_proxy.request import ToolCall
from services.common.errors import UpstreamMalformed
from services.common.vocabulary import FinishReason

_FINISH = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
}
MAX_TOOL_CALLS = 128
# Whatever strange JSON makes of plain reading code.
UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


class ChunkAssembler:
    """Takes `data:` lines in order; what it holds makes the `Completion`.

    Attributes:
        finished: Whether a finish reason has come: the text is whole.
        ended: Whether the end mark has come.
    """

    def __init__(self, model: str) -> None:
        self.finished = False
        self.ended = False
        self._model = model
        self._finish = FinishReason.STOP
        self._calls: dict[int, _Call] = {}
        self._tokens: Tokens | None = None
        self._logprob_sum = 0.0
        self._logprob_count = 0

    def feed(self, data: str) -> Piece | None:
        """Reads one chunk; a piece where the answer grew.

        Raises:
            UpstreamMalformed: No JSON, or not of this protocol.
            UpstreamError: The chunk is an error object.
        """
        if data == "[DONE]":
            self.ended = True
            return None
        try:
            chunk = json.loads(data)
            if not isinstance(chunk, dict):
                raise UpstreamMalformed("the provider sent a chunk that is no object")
            if chunk.get("error"):
                raise error_in_body(chunk)
            return self._read(chunk)
        except UNREADABLE as exc:
            # The chunk may quote the prompt: it is not passed on.
            raise UpstreamMalformed("the provider sent a chunk that cannot be read") from exc

    def complete(self) -> Completion:
        """The whole answer."""
        finish = self._finish
        if self._calls and finish is FinishReason.STOP:
            finish = FinishReason.TOOL_CALLS
        mean = self._logprob_sum / self._logprob_count if self._logprob_count else None
        calls = tuple(ToolCall(c.id, c.name, c.arguments) for _, c in sorted(self._calls.items()))
        return Completion(self._model, finish, calls, self._tokens, mean)

    def _read(self, chunk: dict[str, Any]) -> Piece | None:
        self._model = str(chunk.get("model") or self._model)
        if chunk.get("usage"):
            self._tokens = _tokens(chunk["usage"])
        choices = chunk.get("choices") or []
        if not choices:
            return None
        choice = choices[0]
        self._read_logprobs(choice.get("logprobs") or {})
        delta = choice.get("delta") or {}
        text = delta.get("content") or ""
        if not isinstance(text, str):
            raise TypeError("content")
        calls = delta.get("tool_calls") or []
        for part in calls:
            self._read_call(part)
        if choice.get("finish_reason"):
            self.finished = True
            self._finish = _FINISH.get(str(choice["finish_reason"]), FinishReason.STOP)
        return Piece(self._model, text) if text or calls else None

    def _read_call(self, part: dict[str, Any]) -> None:
        index = int(part.get("index") or 0)
        if index not in self._calls and len(self._calls) >= MAX_TOOL_CALLS:
            raise ValueError("too many tool calls")
        call = self._calls.setdefault(index, _Call())
        function = part.get("function") or {}
        call.id = str(part.get("id") or call.id)
        call.name = str(function.get("name") or call.name)
        call.arguments += str(function.get("arguments") or "")

    def _read_logprobs(self, logprobs: dict[str, Any]) -> None:
        for token in logprobs.get("content") or []:
            self._logprob_sum += float(token["logprob"])
            self._logprob_count += 1


def _tokens(usage: dict[str, Any]) -> Tokens:
    details = usage.get("prompt_tokens_details") or {}
    return Tokens(
        input=max(0, int(usage.get("prompt_tokens") or 0)),
        cached_input=max(0, int(details.get("cached_tokens") or 0)),
        output=max(0, int(usage.get("completion_tokens") or 0)),
    )
