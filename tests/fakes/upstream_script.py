"""What the fake upstream does with each request, and what it has seen."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any
from urllib.parse import parse_qsl

DEFAULT_TEXT = "The fake upstream answers in a few words."


@dataclass(frozen=True)
class Behaviour:
    """How one request is answered; line numbers count from 0 over all SSE lines.

    Attributes:
        text: The answer; a chunk a word.
        when: (words, text) pairs: the text of the first whose words stand in the request.
        echo: Answers with the last message instead.
        chunk_chars: A chunk so many characters instead of a word; 0: a word.
        status: Any other than 200 is answered with an error body at once.
        retry_after: Value of the header `Retry-After` beside an error status.
        content_type: Of a streamed answer.
        ttft_ms: Wait before the answer begins.
        ttft_spread_ms: More of it, by chance from 0 to this.
        chunk_ms: Wait before each further line.
        stall_after: Line before which it stops for ever; -1 never.
        cut_after: Line before which the connection is torn; -1 never.
        end_after: Line before which the stream ends in due form; -1 never.
        bad_json_after: Line that is broken JSON; -1 none.
        error_after: Line that is an error object; -1 none.
        error_code: Code in error objects.
        usage: `own_chunk`, `with_choices` or `none`.
        finish_reason: As sent; empty: never sent.
        done: Whether `[DONE]` ends the stream.
        tool_calls: (name, arguments) pairs, each streamed in two pieces.
        model: As said in the chunks; empty: as asked.
        logprob: Of each chunk's token, where log-probabilities are asked for; 0: not told.
    """

    text: str = DEFAULT_TEXT
    when: tuple[tuple[str, str], ...] = ()
    echo: bool = False
    chunk_chars: int = 0
    status: int = 200
    retry_after: str = ""
    content_type: str = "text/event-stream"
    ttft_ms: float = 0
    ttft_spread_ms: float = 0
    chunk_ms: float = 0
    stall_after: int = -1
    cut_after: int = -1
    end_after: int = -1
    bad_json_after: int = -1
    error_after: int = -1
    error_code: str = "server_error"
    usage: str = "own_chunk"
    finish_reason: str = "stop"
    done: bool = True
    tool_calls: tuple[tuple[str, str], ...] = ()
    model: str = ""
    logprob: float = 0.0

    def lines(self, body: dict[str, Any]) -> Iterator[str]:
        """The SSE data lines of the whole answer."""
        for number, line in enumerate(self._good_lines(body)):
            if number == self.bad_json_after:
                yield line[: len(line) // 2]
            elif number == self.error_after:
                yield json.dumps(self.error_body())
            else:
                yield line

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer in one piece."""
        message = {"role": "assistant", "content": self.text}
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason or None}
        return {
            "id": "fake",
            "model": self._model(body),
            "choices": [choice],
            "usage": self._usage(body),
        }

    def error_body(self) -> dict[str, Any]:
        """An error object that repeats what must never be passed on."""
        return {"error": {"message": "fake failure, key=leaked-key", "code": self.error_code}}

    def _good_lines(self, body: dict[str, Any]) -> Iterator[str]:
        yield self._chunk(body, {"role": "assistant", "content": ""})
        for piece in self._pieces(body):
            yield self._chunk(body, {"content": piece})
        for index, (name, arguments) in enumerate(self.tool_calls):
            yield self._tool(body, index, {"name": name, "arguments": ""}, f"call_{index}")
            yield self._tool(body, index, {"arguments": arguments}, None)
        usage = self._usage(body) if self.usage == "with_choices" else None
        if self.finish_reason or usage:
            yield self._chunk(body, {}, self.finish_reason or None, usage)
        if self.usage == "own_chunk":
            yield json.dumps(
                {
                    "id": "fake",
                    "model": self._model(body),
                    "choices": [],
                    "usage": self._usage(body),
                }
            )
        if self.done:
            yield "[DONE]"

    def _said(self, body: dict[str, Any]) -> str:
        asked = json.dumps(body, ensure_ascii=False) if self.when else ""
        return next((text for words, text in self.when if words in asked), self.text)

    def _pieces(self, body: dict[str, Any]) -> Iterator[str]:
        text = str(body["messages"][-1]["content"]) if self.echo else self._said(body)
        if self.chunk_chars:
            for place in range(0, len(text), self.chunk_chars):
                yield text[place : place + self.chunk_chars]
        elif text:
            first, *words = text.split(" ")
            yield first
            yield from (" " + word for word in words)

    def _tool(
        self, body: dict[str, Any], index: int, function: dict[str, str], id_: str | None
    ) -> str:
        call: dict[str, Any] = {"index": index, "function": function}
        if id_ is not None:
            call |= {"id": id_, "type": "function"}
        return self._chunk(body, {"tool_calls": [call]})

    def _chunk(
        self,
        body: dict[str, Any],
        delta: dict[str, Any],
        finish: str | None = None,
        usage: Any = None,
    ) -> str:
        choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": finish}
        if self.logprob and body.get("logprobs") and delta.get("content"):
            choice["logprobs"] = {"content": [{"logprob": self.logprob}]}
        chunk = {"id": "fake", "object": "chat.completion.chunk", "model": self._model(body)}
        return json.dumps({**chunk, "choices": [choice], "usage": usage})

    def _usage(self, body: dict[str, Any]) -> dict[str, int]:
        prompt = sum(len(str(m.get("content") or "").split()) for m in body.get("messages", []))
        answer = len(self.text.split())
        return {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
        }

    def _model(self, body: dict[str, Any]) -> str:
        return self.model or str(body.get("model", "fake"))


def behaviour_of(options: dict[str, Any], base: Behaviour | None = None) -> Behaviour:
    """A behaviour from JSON or from strings; unknown names are a `ValueError`."""
    kinds = {f.name: type(getattr(Behaviour(), f.name)) for f in fields(Behaviour)}
    values: dict[str, Any] = {}
    for name, value in options.items():
        if name not in kinds:
            raise ValueError(f"unknown option {name}")
        kind = kinds[name]
        if kind is bool and isinstance(value, str):
            value = value not in ("0", "false", "")
        values[name] = tuple(map(tuple, value)) if kind is tuple else kind(value)
    return replace(base or Behaviour(), **values)


@dataclass
class Seen:
    """One request; `outcome` is open, finished, refused, cut or disconnected."""

    model: str
    body: dict[str, Any]
    headers: dict[str, str]
    outcome: str = "open"
    chunks_sent: int = 0

    def as_dict(self) -> dict[str, Any]:
        """For `GET /seen`."""
        return asdict(self)


@dataclass
class Script:
    """The one mutable thing of the fake: what comes next, and what was seen."""

    default: Behaviour | None = None
    queues: dict[str, deque[Behaviour]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)

    def extend(self, order: dict[str, Any]) -> None:
        """Takes `{"model": "" for any, "behaviours": [...], "default": {...}}`."""
        queue = self.queues.setdefault(str(order.get("model", "")), deque())
        queue.extend(behaviour_of(options) for options in order.get("behaviours", ()))
        if "default" in order:
            self.default = behaviour_of(order["default"]) if order["default"] is not None else None

    def behaviour_for(self, model: str) -> Behaviour:
        """Takes the next behaviour for a request to `model`."""
        for name in (model, ""):
            if self.queues.get(name):
                return self.queues[name].popleft()
        _, asked, options = model.partition("?")
        if asked:
            return behaviour_of(dict(parse_qsl(options, keep_blank_values=True)), self.default)
        return self.default or Behaviour()

    def note(self, body: dict[str, Any], headers: dict[str, str]) -> Seen:
        """Keeps a request."""
        entry = Seen(str(body.get("model", "")), body, headers)
        self.seen.append(entry)
        return entry

    def reset(self) -> None:
        """Forgets everything."""
        self.default = None
        self.queues.clear()
        self.seen.clear()
