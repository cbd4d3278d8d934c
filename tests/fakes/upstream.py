"""A scripted provider, OpenAI-compatible and of Anthropic's form, run as a process of its own.

    TANDEM_READY_FILE=/tmp/up.json python -m tests.fakes.upstream

It writes `{"address": "127.0.0.1:PORT"}` into the ready file and serves
`POST /v1/chat/completions` (streaming and not), `POST /v1/messages` (streaming),
`GET /v1/models`, `POST /script`, `GET /seen` and `DELETE /seen`. How a request is
answered is chosen, in order, by the next scripted behaviour for its model, the next one
for any model, options in the model name (`fake?chunk_ms=20&text=hello`), the scripted
default, and last `Behaviour()`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tests.fakes import upstream_messages
from tests.fakes.upstream_script import Behaviour, Script, Seen


class Cut(Exception):
    """Raised inside the server to tear the connection without an end mark."""


class Answers:
    """`POST /v1/chat/completions` or `/v1/messages`.

    Raw ASGI, so that it sees the client leave at once.
    """

    def __init__(self, script: Script, *, messages: bool = False) -> None:
        self._script = script
        self._messages = messages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.json()
        headers = {k.lower(): v for k, v in request.headers.items()}
        seen = self._script.note(body, headers)
        how = self._script.behaviour_for(str(body.get("model", "")))
        if self._messages and upstream_messages.wrong(body, headers):
            how = Behaviour(status=400, error_code="invalid_request_error")
        gone = asyncio.Event()
        watcher = asyncio.create_task(_watch(receive, gone))
        try:
            await _answer(send, body, how, seen, gone, messages=self._messages)
        except Cut:
            seen.outcome = "cut"
            raise
        finally:
            watcher.cancel()


async def _watch(receive: Receive, gone: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


async def _answer(
    send: Send,
    body: dict[str, Any],
    how: Behaviour,
    seen: Seen,
    gone: asyncio.Event,
    *,
    messages: bool,
) -> None:
    if await _left(gone, how.ttft_ms + random.uniform(0, how.ttft_spread_ms)):
        seen.outcome = "disconnected"
        return
    if how.status != 200:
        await _whole(send, how.status, json.dumps(_error_body(how, messages)), _retry_header(how))
        seen.outcome = "refused"
    elif not body.get("stream"):
        await _whole(send, 200, json.dumps(how.completion(body)), {})
        seen.outcome = "finished"
    else:
        lines = upstream_messages.lines(how, body) if messages else how.lines(body)
        await _stream(send, lines, how, seen, gone)


async def _stream(
    send: Send, lines: Iterator[str], how: Behaviour, seen: Seen, gone: asyncio.Event
) -> None:
    await _start(send, 200, {"content-type": how.content_type})
    for number, line in enumerate(lines):
        if number == how.stall_after and await _left(gone, None):
            seen.outcome = "disconnected"
            return
        if number == how.cut_after:
            raise Cut
        if number == how.end_after:
            break
        if await _left(gone, how.chunk_ms if number else 0):
            seen.outcome = "disconnected"
            return
        payload = f"data: {line}\n\n".encode()
        await send({"type": "http.response.body", "body": payload, "more_body": True})
        seen.chunks_sent += 1
    await send({"type": "http.response.body", "body": b"", "more_body": False})
    seen.outcome = "finished"


async def _left(gone: asyncio.Event, wait_ms: float | None) -> bool:
    """Waits (for ever with None) and says whether the client has left meanwhile."""
    if wait_ms == 0:
        return gone.is_set()
    try:
        await asyncio.wait_for(gone.wait(), None if wait_ms is None else wait_ms / 1000)
    except TimeoutError:
        return False
    return True


async def _start(send: Send, status: int, headers: dict[str, str]) -> None:
    raw = [(k.encode(), v.encode()) for k, v in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})


async def _whole(send: Send, status: int, text: str, headers: dict[str, str]) -> None:
    await _start(send, status, {"content-type": "application/json", **headers})
    await send({"type": "http.response.body", "body": text.encode()})


def _error_body(how: Behaviour, messages: bool) -> dict[str, Any]:
    return upstream_messages.error_body(how) if messages else how.error_body()


def _retry_header(how: Behaviour) -> dict[str, str]:
    return {"retry-after": how.retry_after} if how.retry_after else {}


def make_app(script: Script) -> Starlette:
    """The routes over one script."""

    async def set_script(request: Request) -> Response:
        script.extend(await request.json())
        return JSONResponse({"ok": True})

    async def seen(request: Request) -> Response:
        if request.method == "DELETE":
            script.reset()
        return JSONResponse({"requests": [entry.as_dict() for entry in script.seen]})

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "fake", "object": "model"}]})

    return Starlette(
        routes=[
            Route("/v1/chat/completions", Answers(script), methods=["POST"]),
            Route("/v1/messages", Answers(script, messages=True), methods=["POST"]),
            Route("/v1/models", models),
            Route("/script", set_script, methods=["POST"]),
            Route("/seen", seen, methods=["GET", "DELETE"]),
        ]
    )


def main() -> None:
    """Listens on a free loopback port until a signal comes."""
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("FAKE_UPSTREAM_PORT", "0"))))
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    ready = os.environ.get("TANDEM_READY_FILE")
    if ready:
        partial = Path(ready).with_suffix(".partial")
        partial.write_text(json.dumps({"name": "fake-upstream", "address": address}))
        partial.replace(ready)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    config = uvicorn.Config(
        make_app(Script()), log_level="critical", timeout_graceful_shutdown=1, access_log=False
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
