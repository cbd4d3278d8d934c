"""Two small gRPC processes for comparisons: an edge that answers at once, and a bare hop to it.

    python -m benchmarks.constant_edge edge
    python -m benchmarks.constant_edge hop 127.0.0.1:PORT

The hop is what a gateway costs at the least with grpc.aio: it takes `Generate`, calls
`Generate` behind it and passes each message on. Both write their address to the ready file.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import grpc
import uvloop

from services.common.rpc.process import READY_FILE_ENV
from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2, edge_pb2_grpc


class ConstantEdge(edge_pb2_grpc.EdgeWorkerServiceServicer):
    """Always the same short answer."""

    async def Generate(self, request: edge_pb2.GenerateRequest, context: Any) -> None:  # type: ignore[override]
        await context.write(
            edge_pb2.GenerateResponse(started=edge_pb2.Started(model_id="constant"))
        )
        delta = edge_pb2.Delta(text="Tokyo is the capital of Japan.")
        await context.write(edge_pb2.GenerateResponse(delta=delta))
        finished = edge_pb2.Finished(finish_reason=chat_pb2.FINISH_REASON_STOP)
        await context.write(edge_pb2.GenerateResponse(finished=finished))

    async def WatchLoad(self, request: edge_pb2.WatchLoadRequest, context: Any) -> None:  # type: ignore[override]
        lane = edge_pb2.LaneLoad(lane=edge_pb2.LANE_SIMPLE, slots=16, ttft_ms=1, tpot_ms=1)
        while True:
            await context.write(
                edge_pb2.WatchLoadResponse(model_id="constant", context_tokens=8_192, lanes=[lane])
            )
            await asyncio.sleep(0.5)


class BareHop(edge_pb2_grpc.EdgeWorkerServiceServicer):
    """Passes each message on."""

    def __init__(self, address: str) -> None:
        self._stub: Any = edge_pb2_grpc.EdgeWorkerServiceStub(grpc.aio.insecure_channel(address))

    async def Generate(self, request: edge_pb2.GenerateRequest, context: Any) -> None:  # type: ignore[override]
        async for response in self._stub.Generate(request, timeout=8):
            await context.write(response)


async def serve(arguments: list[str]) -> None:
    """Serves until killed."""
    server = grpc.aio.server()
    servicer: Any = ConstantEdge() if arguments[0] == "edge" else BareHop(arguments[1])  # type: ignore[abstract]
    edge_pb2_grpc.add_EdgeWorkerServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    ready = Path(os.environ[READY_FILE_ENV])
    partial = ready.with_suffix(".partial")
    partial.write_text(json.dumps({"address": f"127.0.0.1:{port}"}))
    partial.replace(ready)
    await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1:]))
