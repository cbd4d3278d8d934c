"""The HTTP face: bearer check, streams that end when the client leaves, request log."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import time
import uuid
from collections.abc import Awaitable
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from cli.standin.bodies import BodyLog
from cli.standin.generator import Generator, Prompt
from cli.standin.protocol import Answerer, error_body, read_prompt
from cli.standin.replies import STANDIN_HEADERS, Reply, Stream, Whole
from services.common.errors import InvalidField, TandemError

_log = structlog.get_logger()
_MAX_BODY_BYTES = 1024 * 1024


def make_app(generator: Generator, model: str, key: str, bodies: BodyLog) -> Starlette:
    """The routes over one generator.

    Args:
        generator: Makes the text.
        model: Name under which it answers; says stand-in.
        key: The bearer key that clients must show.
        bodies: Where request bodies are kept.
    """

    async def models(request: Request) -> Response:
        if not _knows_key(request, key):
            return _refusal(401, "a valid bearer key is required", "authentication_error")
        data = [{"id": model, "object": "model", "owned_by": "tandem-standin"}]
        return JSONResponse({"object": "list", "data": data}, headers=STANDIN_HEADERS)

    async def health(_: Request) -> Response:
        return JSONResponse(
            {"status": "ok", "standin": True, "model": model}, headers=STANDIN_HEADERS
        )

    completions = Completions(generator, model, key, bodies)
    return Starlette(
        routes=[
            Route("/v1/chat/completions", completions, methods=["POST"]),
            Route("/v1/models", models),
            Route("/healthz", health),
        ]
    )


class Completions:
    """`POST /v1/chat/completions`; raw ASGI, so that it sees at once when the client leaves."""

    def __init__(self, generator: Generator, model: str, key: str, bodies: BodyLog) -> None:
        self._generator = generator
        self._model = model
        self._key = key
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.monotonic()
        request_id = uuid.uuid4().hex
        outcome = "disconnected"
        try:
            outcome = await self._serve(request_id, scope, receive, send)
        finally:
            _log.info(
                "standin_request",
                standin=True,
                model=self._model,
                request_id=request_id,
                outcome=outcome,
                total_ms=round((time.monotonic() - began) * 1000.0, 1),
            )

    async def _serve(self, request_id: str, scope: Scope, receive: Receive, send: Send) -> str:
        request = Request(scope, receive)
        if not _knows_key(request, self._key):
            refused = _refusal(401, "a valid bearer key is required", "authentication_error")
            await refused(scope, receive, send)
            return "unauthenticated"
        try:
            body = await _read_body(request)
            await self._bodies.append(body)
            prompt = read_prompt(body)
        except InvalidField as error:
            await _refusal(400, error.message, "invalid_request_error")(scope, receive, send)
            return error.reason
        who = Answerer.new(request_id, self._model, self._generator.model_id)
        if body.get("stream") is True:
            include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
            reply: Reply = Stream(who, send, include_usage)
        else:
            reply = Whole(who, send)
        return await _unless_gone(self._answer(request_id, prompt, reply), receive)

    async def _answer(self, request_id: str, prompt: Prompt, reply: Reply) -> str:
        try:
            await self._generator.generate(request_id, prompt, reply.push)
            return "ok"
        except TandemError as error:
            await reply.fail(error)
            return error.reason


async def _unless_gone(work: Awaitable[str], receive: Receive) -> str:
    """Runs `work`; cancels it at once when the client leaves."""
    running = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({running, watching}, return_when=asyncio.FIRST_COMPLETED)
        return await running if running.done() else "disconnected"
    finally:
        for task in (running, watching):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read_body(request: Request) -> Any:
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > _MAX_BODY_BYTES:
            raise InvalidField("body", f"at most {_MAX_BODY_BYTES} bytes")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise InvalidField("body", "must be JSON") from exc


def _knows_key(request: Request, key: str) -> bool:
    given = request.headers.get("authorization", "")
    return hmac.compare_digest(given.encode("latin-1"), f"Bearer {key}".encode("latin-1"))


def _refusal(status: int, message: str, code: str) -> JSONResponse:
    return JSONResponse(error_body(message, code), status, headers=STANDIN_HEADERS)
