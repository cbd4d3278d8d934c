"""Starts an edge worker as a process of its own and talks to it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2, edge_pb2_grpc

ROOT = Path(__file__).parents[3]
PATIENCE_S = 60.0


def idle(load: edge_pb2.LaneLoad) -> bool:
    """Nothing runs and nothing waits."""
    return load.active == load.queued == 0


@dataclass
class Answer:
    """A stream, read to its end."""

    started: edge_pb2.Started = field(default_factory=edge_pb2.Started)
    finished: edge_pb2.Finished = field(default_factory=edge_pb2.Finished)
    deltas: list[edge_pb2.Delta] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas)


@dataclass
class Edge:
    """A running worker."""

    stub: edge_pb2_grpc.EdgeWorkerServiceAsyncStub
    channel: grpc.aio.Channel
    process: subprocess.Popen[bytes]

    async def ask(
        self, text: str, metadata: tuple[tuple[str, str], ...] = (), **fields: object
    ) -> Answer:
        """Reads a whole answer."""
        answer = Answer()
        async for event in self.stub.Generate(ask(text, **fields), metadata=metadata):
            kind = event.WhichOneof("event") or ""
            answer.kinds.append(kind)
            if kind == "delta":
                answer.deltas.append(event.delta)
            elif kind == "started":
                answer.started = event.started
            else:
                answer.finished = event.finished
        return answer

    async def load(self, lane: int = edge_pb2.LANE_SIMPLE) -> edge_pb2.LaneLoad:
        """Load of a lane now."""
        call = self.stub.WatchLoad(edge_pb2.WatchLoadRequest())
        report = await anext(aiter(call))
        call.cancel()
        return next(one for one in report.lanes if one.lane == lane)

    async def until(self, holds: Callable[[edge_pb2.LaneLoad], bool]) -> edge_pb2.LaneLoad:
        """Waits until the simple lane's load is such; returns it."""
        for _ in range(int(PATIENCE_S / 0.02)):
            load = await self.load()
            if holds(load):
                return load
            await asyncio.sleep(0.02)
        raise TimeoutError("the lane never came to that")


def ask(text: str, **fields: object) -> edge_pb2.GenerateRequest:
    """A request of one turn."""
    request = edge_pb2.GenerateRequest(
        tenant="t",
        lane=edge_pb2.LANE_SIMPLE,
        messages=[chat_pb2.Message(role=chat_pb2.ROLE_USER, content=text)],
    )
    request.MergeFrom(edge_pb2.GenerateRequest(**fields))  # type: ignore[arg-type]
    return request


def details(
    error: grpc.aio.AioRpcError,
) -> tuple[error_details_pb2.ErrorInfo, error_details_pb2.RetryInfo]:
    """What the status carries."""
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    for detail in rpc_status.from_call(error).details:
        detail.Unpack(info)
        detail.Unpack(retry)
    return info, retry


@asynccontextmanager
async def edge(
    folder: Path, env: Mapping[str, str], module: str = "tests.fakes.edge_main"
) -> AsyncIterator[Edge]:
    """A worker on a free port; `env` overrides its settings."""
    ready = folder / "ready.json"
    process = _spawn(ready, env, module)
    try:
        address = await _address(ready, process)
        async with grpc.aio.insecure_channel(address) as channel:
            yield Edge(edge_pb2_grpc.EdgeWorkerServiceStub(channel), channel, process)
    finally:
        process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(process.wait, PATIENCE_S)
    assert code == 0


def _spawn(ready: Path, env: Mapping[str, str], module: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", module, "--config", "config/edge.yaml"],
        cwd=ROOT,
        env={
            **os.environ,
            "TANDEM_READY_FILE": str(ready),
            "TANDEM_EDGE__SERVER__LISTEN": "127.0.0.1:0",
            "TANDEM_EDGE__SERVER__DRAIN_MS": "500",
            **env,
        },
    )


def _read(ready: Path) -> str:
    return str(json.loads(ready.read_text())["address"]) if ready.exists() else ""


async def _address(ready: Path, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + PATIENCE_S
    for _ in range(int(PATIENCE_S / 0.05)):
        if address := _read(ready):
            return address
        if process.poll() is not None or time.monotonic() > end:
            break
        await asyncio.sleep(0.05)
    raise TimeoutError(f"the edge worker did not start; exit code {process.poll()}")
