"""A response body that may not grow without end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from services.common.errors import UpstreamMalformed


class BoundedStream(httpx.AsyncByteStream):
    """Passes bytes on until there are too many.

    Raises:
        UpstreamMalformed: More than `max_bytes` came.
    """

    def __init__(self, inner: httpx.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for part in self._inner:
            seen += len(part)
            if seen > self._max_bytes:
                raise UpstreamMalformed(f"the provider sent more than {self._max_bytes} bytes")
            yield part

    async def aclose(self) -> None:
        """Closes the stream inside."""
        await self._inner.aclose()


def bound(response: httpx.Response, max_bytes: int) -> None:
    """Limits what can still be read from `response`."""
    if isinstance(response.stream, httpx.AsyncByteStream):
        response.stream = BoundedStream(response.stream, max_bytes)
