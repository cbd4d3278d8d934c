"""How an answer goes out: as a stream of events or in one piece."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from starlette.types import Send

from cli.standin.generator import Begun, Ended, Output, Text
from cli.standin.protocol import Answerer, chunk, completion, error_body, last_chunks, text_chunk
from services.common.errors import ContextTooLong, InvalidField, QueueFull, TandemError

STANDIN_HEADERS = {"x-tandem-standin": "true"}


class Reply(ABC):
    """One answer on its way out."""

    def __init__(self, who: Answerer, send: Send) -> None:
        self._who = who
        self._send = send
        self._begun = False

    @abstractmethod
    async def push(self, output: Output) -> None:
        """Takes the next output of the generator."""

    async def fail(self, error: TandemError) -> None:
        """Tells an error, by status where nothing was sent yet."""
        status, code = _status_of(error)
        body = error_body(error.message, code)
        if self._begun:
            await self._body(f"data: {json.dumps(body)}\n\n".encode(), more=False)
            return
        retry = {"retry-after": "1"} if status in (429, 503) else {}
        await self._start(status, "application/json", retry)
        await self._body(json.dumps(body).encode(), more=False)

    async def _start(self, status: int, kind: str, more: dict[str, str] | None = None) -> None:
        self._begun = True
        headers = {"content-type": kind, **STANDIN_HEADERS, **(more or {})}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _body(self, data: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


class Stream(Reply):
    """Server-sent events, a chunk a piece."""

    def __init__(self, who: Answerer, send: Send, include_usage: bool) -> None:
        super().__init__(who, send)
        self._include_usage = include_usage

    async def push(self, output: Output) -> None:
        """See `Reply.push`."""
        if isinstance(output, Begun):
            await self._start(200, "text/event-stream")
            await self._event(chunk(self._who, {"role": "assistant", "content": ""}))
        elif isinstance(output, Text):
            await self._event(text_chunk(self._who, output))
        else:
            for last in last_chunks(self._who, output, self._include_usage):
                await self._event(last)
            await self._body(b"data: [DONE]\n\n", more=False)

    async def _event(self, made: dict[str, Any]) -> None:
        data = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
        await self._body(f"data: {data}\n\n".encode(), more=True)


class Whole(Reply):
    """One JSON object at the end."""

    def __init__(self, who: Answerer, send: Send) -> None:
        super().__init__(who, send)
        self._texts: list[str] = []

    async def push(self, output: Output) -> None:
        """See `Reply.push`."""
        if isinstance(output, Text):
            self._texts.append(output.text)
        elif isinstance(output, Ended):
            await self._start(200, "application/json")
            made = completion(self._who, "".join(self._texts), output)
            await self._body(json.dumps(made, ensure_ascii=False).encode(), more=False)


def _status_of(error: TandemError) -> tuple[int, str]:
    if isinstance(error, ContextTooLong):
        return 400, "context_length_exceeded"
    if isinstance(error, InvalidField):
        return 400, "invalid_request_error"
    if isinstance(error, QueueFull):
        return 429, "rate_limit_exceeded"
    return 503, "server_error"
