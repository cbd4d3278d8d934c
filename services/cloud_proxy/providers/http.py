"""Client of one model over HTTP, whose answer is a stream of server-sent events."""

from __future__ import annotations

import contextlib
import json
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx
from httpx_sse import EventSource, ServerSentEvent, SSEError

from services.cloud_proxy.providers.base import Completion, Piece, Sink
from services.cloud_proxy.providers.bounded import bound
from services.cloud_proxy.providers.failures import (
    error_in_body,
    error_of_status,
    error_of_transport,
    plain_code,
)
from services.cloud_proxy.providers.patience import Patience
from services.cloud_proxy.redaction.cleared import ClearedRequest
from services.common.errors import UpstreamCut, UpstreamMalformed, UpstreamStalled

_MAX_ERROR_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is reached, and how.

    Attributes:
        provider: Name for logs, spans and callers.
        base_url: Up to and including `/v1`.
        stall_ms: Longest silence between two chunks.
        first_chunk_ms: Longest wait for the head of the answer and the first chunk.
        connect_ms: Longest wait for a connection.
        max_response_bytes: Most bytes of one answer.
        max_connections: Size of the pool.
        keepalive_s: How long an idle connection is kept.
        ca_file: More trusted certificates; empty: the usual ones.
    """

    provider: str
    base_url: str
    stall_ms: int
    first_chunk_ms: int
    connect_ms: int
    max_response_bytes: int
    max_connections: int
    keepalive_s: int
    ca_file: str = ""

    def __repr__(self) -> str:
        return f"Endpoint({self.provider}, {self.base_url})"


class Assembler(Protocol):
    """Puts the events of one answer together.

    Attributes:
        finished: Whether the text is whole.
        ended: Whether the end mark has come.
    """

    finished: bool
    ended: bool

    def feed(self, data: str) -> Piece | None:
        """Reads one event; a piece where the answer grew.

        Raises:
            UpstreamError: It is an error, or not of this protocol.
        """

    def complete(self) -> Completion:
        """The whole answer."""


@dataclass(frozen=True, slots=True)
class Wire:
    """How one API is spoken.

    Attributes:
        path: Below the base URL.
        write: Makes the JSON body.
        assembler: Makes what reads one answer.
        headers: Sent with every call, the key among them.
    """

    path: str
    write: Callable[[ClearedRequest], dict[str, Any]]
    assembler: Callable[[], Assembler]
    headers: Mapping[str, str] = field(repr=False)


class HttpProvider:
    """Streams answers; makes one try a call and keeps connections warm between calls."""

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self.name = endpoint.provider
        self._endpoint = endpoint
        self._wire = wire
        self._client = _client(endpoint, wire.headers)

    async def generate(
        self, request: ClearedRequest, sink: Sink, *, expires_at: float
    ) -> Completion:
        """See `Provider.generate`."""
        body = self._wire.write(request)
        assembler = self._wire.assembler()
        first = Patience(self._endpoint.first_chunk_ms, expires_at)
        answering = False
        try:
            async with AsyncExitStack() as stack:
                opened = self._client.stream(
                    "POST", self._wire.path, json=body, timeout=self._timeout(expires_at)
                )
                response = await first.wait(stack.enter_async_context(opened))
                await self._check(response, first)
                answering = True
                await self._read(response, assembler, sink, first)
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            if not assembler.finished:
                raise error_of_transport(exc, answering=answering) from exc
        except UpstreamStalled:
            # The text is whole; only usage or the end mark is missing.
            if not assembler.finished:
                raise
        return assembler.complete()

    async def warm(self) -> None:
        """See `Provider.warm`: the handshake, and modules that load late, are behind us then."""
        with contextlib.suppress(httpx.HTTPError, OSError):
            timeout = self._endpoint.connect_ms / 1000.0
            await self._client.head("/models", timeout=timeout)

    async def close(self) -> None:
        """Closes the pool."""
        await self._client.aclose()

    async def _check(self, response: httpx.Response, patience: Patience) -> None:
        """Raises unless a stream of events begins."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code == httpx.codes.OK and kind == "text/event-stream":
            bound(response, self._endpoint.max_response_bytes)
            return
        bound(response, _MAX_ERROR_BYTES)
        try:
            body = json.loads(await patience.wait(response.aread()))
        except (ValueError, UpstreamMalformed, httpx.HTTPError):
            body = None
        if response.status_code != httpx.codes.OK:
            raise error_of_status(response.status_code, response.headers, plain_code(body))
        if isinstance(body, dict) and body.get("error"):
            raise error_in_body(body)
        raise UpstreamMalformed("the provider answered with something that is no event stream")

    async def _read(
        self, response: httpx.Response, assembler: Assembler, sink: Sink, first: Patience
    ) -> None:
        patience = first
        try:
            async with aclosing(EventSource(response).aiter_sse()) as events:
                event: ServerSentEvent | None = None
                while not assembler.ended:
                    event = await patience.wait(anext(events, None))
                    patience = Patience(self._endpoint.stall_ms, first.expires_at)
                    if event is None:
                        break
                    piece = assembler.feed(event.data) if event.data else None
                    if piece is not None:
                        await sink(piece)
        except (SSEError, UnicodeDecodeError) as exc:
            raise UpstreamMalformed("the provider sent no proper event stream") from exc
        if not (assembler.ended or assembler.finished):
            raise UpstreamCut("the answer ended before its end mark")

    def _timeout(self, expires_at: float) -> httpx.Timeout:
        """Reads are bounded by `Patience`; connecting and the pool by the budget."""
        remaining_s = max(0.001, expires_at - time.monotonic())
        connect_s = min(self._endpoint.connect_ms / 1000.0, remaining_s)
        return httpx.Timeout(None, connect=connect_s, pool=remaining_s)


def _client(endpoint: Endpoint, more: Mapping[str, str]) -> httpx.AsyncClient:
    headers = {
        **more,
        "accept": "text/event-stream",
        # A compressed answer could be small on the wire and huge in memory.
        "accept-encoding": "identity",
        "user-agent": "tandem-cloud-proxy",
    }
    return httpx.AsyncClient(
        base_url=endpoint.base_url.rstrip("/"),
        headers=headers,
        verify=_tls(endpoint.ca_file),
        follow_redirects=False,
        trust_env=False,
        limits=httpx.Limits(
            max_connections=endpoint.max_connections,
            max_keepalive_connections=endpoint.max_connections,
            keepalive_expiry=endpoint.keepalive_s,
        ),
    )


def _tls(ca_file: str) -> ssl.SSLContext:
    """Verified TLS always."""
    context = httpx.create_ssl_context(trust_env=False)
    if ca_file:
        context.load_verify_locations(ca_file)
    return context
