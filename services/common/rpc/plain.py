"""A small port in plain HTTP: metrics for Prometheus, health for probes that speak no TLS.

It runs on the service's own event loop, so that a loop that hangs answers here no more
than it does to gRPC. Nothing of a request is read but its first line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from services.common.errors import ConfigInvalid

# A prober that says nothing for so long is let go; also the longest wait for a slow reader.
_PATIENCE_S = 5.0
_MAX_HEAD_BYTES = 8 * 1024
_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


@dataclass(frozen=True, slots=True)
class _Page:
    status: int
    body: bytes
    kind: str = "text/plain; charset=utf-8"


class PlainPort:
    """Serves `/metrics`, `/livez` and `/readyz`.

    Args:
        is_ready: Whether the service takes calls now.
    """

    def __init__(self, is_ready: Callable[[], bool]) -> None:
        self._is_ready = is_ready
        self._server: asyncio.Server | None = None

    async def open(self, listen: str) -> str:
        """Listens; returns host:port. Raises ConfigInvalid where it cannot."""
        host, _, port = listen.rpartition(":")
        try:
            if not host:  # asyncio would take it for every address
                raise ValueError("no host")
            self._server = await asyncio.start_server(
                self._serve, host.strip("[]"), int(port), limit=_MAX_HEAD_BYTES
            )
        except (OSError, ValueError, OverflowError) as exc:
            raise ConfigInvalid(
                f"telemetry.metrics_listen: cannot listen on {listen}: "
                "host:port, on a port that is free"
            ) from exc
        return f"{host}:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Stops listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                page = await self._answer(head.split(b"\r\n", 1)[0].decode("latin-1"))
                writer.write(_encoded(page))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # no request, or nobody who reads the answer
        finally:
            writer.close()

    async def _answer(self, line: str) -> _Page:
        method, _, rest = line.partition(" ")
        if method != "GET":
            return _Page(405, b"only GET\n")
        match rest.partition(" ")[0].partition("?")[0]:
            case "/metrics":
                # Off the loop: with many series it takes milliseconds.
                return _Page(200, await asyncio.to_thread(generate_latest), CONTENT_TYPE_LATEST)
            case "/livez":
                return _Page(200, b"alive\n")
            case "/readyz":
                return _Page(200, b"ready\n") if self._is_ready() else _Page(503, b"not ready\n")
        return _Page(404, b"there are /metrics, /livez and /readyz\n")


def _encoded(page: _Page) -> bytes:
    head = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\nContent-Type: {page.kind}\r\n"
        f"Content-Length: {len(page.body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + page.body
