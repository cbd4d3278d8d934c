"""The edge worker's load, as it last told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import grpc
import structlog

from services.router.config import EdgeLink
from services.router.policy.config import LatencyPolicy
from services.router.policy.facts import EdgeFacts
from tandem.edge.v1 import edge_pb2, edge_pb2_grpc

_log = structlog.get_logger()
_RETRY_S = 0.2


class EdgeLoad:
    """Follows `WatchLoad` and answers with the newest facts.

    Before the first report the edge counts as up with assumed estimates; when a stream
    cannot be opened, or after a silence longer than `stale_after_ms`, as down.
    """

    def __init__(
        self, channel: grpc.aio.Channel, link: EdgeLink, clock: Callable[[], float]
    ) -> None:
        self._stub: Any = edge_pb2_grpc.EdgeWorkerServiceStub(channel)
        self._link = link
        self._clock = clock
        self._report: edge_pb2.WatchLoadResponse | None = None
        self._reported_at = 0.0
        self._lost = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to follow, on the running loop."""
        self._task = asyncio.create_task(self._follow(), name="edge-load")

    async def stop(self) -> None:
        """Ends following."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def facts(self, prior: LatencyPolicy, window_tokens: int) -> EdgeFacts:
        """The edge as last reported; the slower lane's estimates are never assumed."""
        report = self._report
        if report is None or not report.lanes:
            return EdgeFacts(
                not self._lost, window_tokens, prior.edge_ttft_prior_ms, prior.edge_tpot_prior_ms
            )
        silent_ms = (self._clock() - self._reported_at) * 1000.0
        lane = report.lanes[0]
        return EdgeFacts(
            up=not self._lost and silent_ms <= self._link.stale_after_ms,
            context_tokens=report.context_tokens or window_tokens,
            ttft_ms=lane.ttft_ms or prior.edge_ttft_prior_ms,
            tpot_ms=lane.tpot_ms or prior.edge_tpot_prior_ms,
        )

    async def _follow(self) -> None:
        request = edge_pb2.WatchLoadRequest(interval_ms=self._link.report_interval_ms)
        while True:
            told, why = False, "END_OF_STREAM"
            try:
                async for report in self._stub.WatchLoad(request):
                    self._report, self._reported_at, told = report, self._clock(), True
                    self._found()
            except grpc.aio.AioRpcError as exc:
                why = exc.code().name
            if told:  # a worker that goes, or a connection that came of age: ask again at once
                continue
            self._missed(why)
            await asyncio.sleep(_RETRY_S)

    def _found(self) -> None:
        if self._lost:
            _log.info("edge_found")
        self._lost = False

    def _missed(self, why: str) -> None:
        if not self._lost:
            _log.warning("edge_lost", status=why)
        self._lost = True
