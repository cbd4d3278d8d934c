"""Entries that wait in memory for the writer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from services.router.ledger.entry import Entry


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry, and who waits to hear whether it is safe."""

    entry: Entry
    kept: asyncio.Future[bool] | None = None

    def settle(self, kept: bool) -> None:
        """Tells, unless nobody waits any more."""
        if self.kept is not None and not self.kept.done():
            self.kept.set_result(kept)


class EntryQueue:
    """Bounded; used on the event loop alone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: deque[Waiting] = deque()
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Waiting) -> bool:
        """Takes it; False where there is no room."""
        if len(self._items) >= self._most:
            return False
        self._items.append(item)
        self._wake.set()
        return True

    def put_back(self, items: Sequence[Waiting]) -> Sequence[Waiting]:
        """Puts the oldest before the others again; returns those for which there is no room."""
        room = self._most - len(self._items)
        self._items.extendleft(reversed(items[:room]))
        return items[room:]

    def take(self, most: int) -> Sequence[Waiting]:
        """The oldest, at most so many."""
        self._wake.clear()
        return [self._items.popleft() for _ in range(min(most, len(self._items)))]

    def wake(self) -> None:
        """Ends a wait."""
        self._wake.set()

    async def wait(self, timeout_s: float | None) -> None:
        """Until something is there, `wake` was called, or time is up."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._items and not self._wake.is_set():
                    await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()
