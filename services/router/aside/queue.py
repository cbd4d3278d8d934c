"""Runs work that nobody waits for: bounded in number, dropped where too much waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from opentelemetry import metrics

from services.common.telemetry import names

_log = structlog.get_logger()
_runs = metrics.get_meter("tandem.router").create_counter(
    names.ASIDE_RUNS, description="Work after a reply, by what became of it"
)
_AT_ONCE: Final = 4
_WAITING: Final = 64

Work = Callable[[], Awaitable[None]]


class AsideQueue:
    """Used on the event loop alone; started and stopped with the process."""

    def __init__(self, at_once: int = _AT_ONCE, waiting: int = _WAITING) -> None:
        self._queue: asyncio.Queue[Work] = asyncio.Queue(waiting)
        self._at_once = at_once
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begins to work."""
        self._tasks = [
            asyncio.create_task(self._run(), name=f"aside-{number}")
            for number in range(self._at_once)
        ]

    def offer(self, work: Work) -> bool:
        """Takes work, or drops it and says so. Never waits."""
        try:
            self._queue.put_nowait(work)
        except asyncio.QueueFull:
            _runs.add(1, {names.OUTCOME: "DROPPED"})
            return False
        return True

    async def stop(self) -> None:
        """Drops what waits and ends what runs: nobody waits for it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            work = await self._queue.get()
            try:
                await work()
                _runs.add(1, {names.OUTCOME: "DONE"})
            except Exception as error:  # the queue outlives whatever breaks in there
                _log.error("aside_failed", error=type(error).__name__)
                _runs.add(1, {names.OUTCOME: "FAILED"})
