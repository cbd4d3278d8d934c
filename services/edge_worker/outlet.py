"""The bounded buffer between the engine and one caller; lives on the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from services.common.errors import SlowReader
from services.edge_worker.events import DeltaEvent, Event, FailedEvent

# Rough size of a reported token or alternative on the wire.
_TOKEN_BYTES = 16


class Outlet:
    """Takes events of a job and hands them out one by one.

    A caller that lets more than the bound pile up is cut off: what is buffered is
    dropped, `on_overflow` is called once, and the next `get` raises.

    Args:
        max_events: Most events that may wait.
        max_bytes: Most bytes of text that may wait.
        on_overflow: Stops the work.
    """

    def __init__(self, max_events: int, max_bytes: int, on_overflow: Callable[[], None]) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._on_overflow = on_overflow
        self._events: deque[tuple[Event, int]] = deque()
        self._bytes = 0
        self._overflowed = False
        self._filled = asyncio.Event()

    @property
    def overflowed(self) -> bool:
        """The caller was too slow."""
        return self._overflowed

    def push(self, event: Event) -> None:
        """Takes an event; never blocks."""
        if self._overflowed:
            return
        size = _size(event)
        self._events.append((event, size))
        self._bytes += size
        if len(self._events) > self._max_events or self._bytes > self._max_bytes:
            self._overflowed = True
            self._events.clear()
            self._bytes = 0
            self._on_overflow()
        self._filled.set()

    async def get(self) -> Event:
        """The next event.

        Raises:
            SlowReader: The bound was exceeded.
            TandemError: The job failed.
        """
        while not self._events:
            if self._overflowed:
                raise SlowReader("the stream was not read fast enough; generation was stopped")
            self._filled.clear()
            await self._filled.wait()
        event, size = self._events.popleft()
        self._bytes -= size
        if isinstance(event, FailedEvent):
            raise event.error
        return event


def _size(event: Event) -> int:
    if not isinstance(event, DeltaEvent):
        return 0
    tokens = sum(1 + len(token.alternatives) for token in event.tokens)
    return len(event.text.encode("utf-8", "replace")) + tokens * _TOKEN_BYTES
