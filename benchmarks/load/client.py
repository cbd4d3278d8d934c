"""A process of callers: `python -m benchmarks.load.client ORDER.json`; writes what each got."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import uvloop

from benchmarks.load import mix
from tandem.common.v1 import decision_pb2
from tandem.router.v1 import router_pb2, router_pb2_grpc
from tests.e2e.harness import question

DEADLINE_MS = 8_000


class Client:
    """Callers of one process, over one channel."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._rng = random.Random(order["seed"])
        self._channel = grpc.aio.insecure_channel(order["address"])
        self._stub: Any = router_pb2_grpc.RouterServiceStub(self._channel)
        self._asks = self._source()
        self._until = 0.0
        self.found: list[dict[str, Any]] = []

    def _source(self) -> Iterator[mix.Ask]:
        file = self._order.get("samples")
        seed = self._order["seed"]
        return mix.samples(Path(file), seed) if file else mix.asks(seed)

    async def run(self) -> None:
        """For the ordered time, closed or open loop."""
        await self._channel.channel_ready()
        self._until = time.monotonic() + self._order["seconds"]
        if self._order["rate"]:
            await self._open()
        else:
            await asyncio.gather(*(self._closed() for _ in range(self._order["callers"])))
        await self._channel.close()

    async def _closed(self) -> None:
        """Asks, waits for the answer, thinks, asks again."""
        think_s = self._order["think_ms"] / 1000.0
        await asyncio.sleep(self._rng.uniform(0.0, think_s))
        while time.monotonic() < self._until:
            await self._one()
            await asyncio.sleep(self._rng.expovariate(1.0 / think_s) if think_s else 0.0)

    async def _open(self) -> None:
        """Arrivals at a rate, whatever becomes of those before."""
        running: set[asyncio.Task[None]] = set()
        while time.monotonic() < self._until:
            task = asyncio.create_task(self._one())
            running.add(task)
            task.add_done_callback(running.discard)
            await asyncio.sleep(self._rng.expovariate(self._order["rate"]))
        await asyncio.gather(*running)

    async def _one(self) -> None:
        ask = next(self._asks)
        request = question(
            ask.text, task_type=ask.task_type, max_output_tokens=ask.max_output_tokens
        )
        if ask.labels:
            request.output.labels.values.extend(mix.LABELS)
        started = time.monotonic()
        row: dict[str, Any] = {"complex": ask.complex, "good": False, "level": "", "cost": 0}
        try:
            reply = await self._stub.Route(
                request,
                timeout=DEADLINE_MS / 1000.0,
                metadata=[("deadline_ms", str(DEADLINE_MS))],
            )
        except grpc.aio.AioRpcError as error:
            row["level"] = error.code().name
        else:
            self._took(row, ask, reply)
        row["ms"] = (time.monotonic() - started) * 1000.0
        self.found.append(row)

    def _took(self, row: dict[str, Any], ask: mix.Ask, reply: router_pb2.RouteResponse) -> None:
        """An acceptable answer: a model's or a fresh cache's, not empty, its contract kept."""
        outcome = reply.outcome
        row["level"] = decision_pb2.Level.Name(outcome.decision.level)[6:]
        row["cost"] = outcome.usage.cost_micro_usd
        row["partial"] = outcome.partial
        kept = reply.text in mix.LABELS if ask.labels else bool(reply.text.strip())
        row["good"] = kept and row["level"] != "L4"


async def _all(order: dict[str, Any]) -> list[dict[str, Any]]:
    client = Client(order)
    await client.run()
    return client.found


def main() -> None:
    """Reads the order, calls, writes what was found."""
    order = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    found = uvloop.run(_all(order))
    Path(order["out"]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
