"""How late the event loop wakes up: the first sign that something blocks it."""

from __future__ import annotations

import asyncio
import contextlib
import time

from opentelemetry import metrics

from services.common.telemetry import names

PROBE_S = 0.05


class LoopLag:
    """Sleeps a fixed time, again and again, and keeps by how much it overslept.

    Attributes:
        worst_ms: Largest lag since the last `reset`.
    """

    def __init__(self) -> None:
        self.worst_ms = 0.0
        self._histogram = metrics.get_meter("tandem").create_histogram(
            names.LOOP_LAG, unit="ms", description="Delay of the event loop's wake-up"
        )
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins probing on the running loop."""
        self._task = asyncio.create_task(self._probe(), name="loop-lag")

    async def stop(self) -> None:
        """Ends probing."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def reset(self) -> float:
        """Returns the worst lag so far, in milliseconds, and starts anew."""
        worst, self.worst_ms = self.worst_ms, 0.0
        return worst

    async def _probe(self) -> None:
        while True:
            due = time.monotonic() + PROBE_S
            await asyncio.sleep(PROBE_S)
            lag_ms = max(0.0, (time.monotonic() - due) * 1000.0)
            self.worst_ms = max(self.worst_ms, lag_ms)
            self._histogram.record(lag_ms)
