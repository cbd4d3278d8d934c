"""Whether new calls should come, as gRPC health tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from grpc_health.v1 import health_pb2
from grpc_health.v1._async import HealthServicer

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Readiness:
    """Handed to an app when it starts; the app may take readiness back and give it again.

    Attributes:
        draining: Set when no more calls are taken. Streams that would never end by
            themselves end on it, so that they do not hold the drain up.
        ready: What health was last told.
    """

    def __init__(self, health: HealthServicer, service_names: Sequence[str]) -> None:
        self._health = health
        self._names = ("", "readiness", *service_names)
        self._pending: asyncio.Task[None] | None = None
        self.draining = asyncio.Event()
        self.ready = False
        self._leaving = False

    async def leave(self) -> None:
        """The process is to stop: from now on the answer stays no."""
        self._leaving = True
        await self.set(False)

    async def set(self, ready: bool) -> None:
        """Tells health."""
        self.ready = ready and not self._leaving
        status = SERVING if self.ready else NOT_SERVING
        for name in self._names:
            await self._health.set(name, status)

    def change(self, ready: bool) -> None:
        """As `set`, for callbacks on the event loop that cannot await; the last call wins."""
        self._later(self.set(ready))

    def component(self, name: str, well: bool) -> None:
        """Tells the state of a named part that readiness does not depend on."""
        self._later(self._health.set(name, SERVING if well else NOT_SERVING))

    def _later(self, step: Coroutine[Any, Any, None]) -> None:
        previous = self._pending

        async def follow() -> None:
            if previous is not None:
                await previous
            await step

        self._pending = asyncio.create_task(follow(), name="readiness")
