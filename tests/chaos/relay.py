"""TCP relays between the hops, which slow, hold, cut, refuse and garble: one process for all.

    python -m tests.chaos.relay '{"edge": ["127.0.0.1", 1, "127.0.0.1", 2]}'

Each hop listens on (host, port) and passes on to (host, port). It takes one JSON object a
line on stdin, `{"hop": "edge", "mode": "slow"}`, and writes `ok` when it is in force.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from dataclasses import dataclass, field

SLOW_S = 0.2
MODES = ("pass", "slow", "stalled", "cut", "refusing", "lying")
Ends = tuple[str, int, str, int]


@dataclass(eq=False)
class Hop:
    """One relay; `mode` holds for bytes that come from now on."""

    ends: Ends
    mode: str = "pass"
    moving: asyncio.Event = field(default_factory=asyncio.Event)
    writers: set[asyncio.StreamWriter] = field(default_factory=set)
    server: asyncio.Server | None = None

    async def listen(self) -> None:
        """Begins to take connections."""
        self.moving.set()
        self.server = await asyncio.start_server(self._serve, self.ends[0], self.ends[1])

    async def become(self, mode: str) -> None:
        """Another mode. `cut` tears what is open and lets new connections through."""
        if mode in ("cut", "refusing") and self.server is not None:
            if mode == "refusing":
                self.server.close()
                self.server = None
            for writer in list(self.writers):
                writer.transport.abort()
        if mode != "refusing" and self.server is None:
            await self.listen()
        self.mode = mode
        (self.moving.clear if mode == "stalled" else self.moving.set)()

    async def _serve(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self.writers.add(back)
        try:
            far, out = await asyncio.open_connection(*self.ends[2:])
        except OSError:
            back.transport.abort()
            self.writers.discard(back)
            return
        self.writers.add(out)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(near, out))
                both.create_task(self._pump(far, back))
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for writer in (back, out):
                writer.transport.abort()
                self.writers.discard(writer)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            if self.mode == "slow":
                await asyncio.sleep(SLOW_S)
            await self.moving.wait()
            sink.write(bytes(255 - byte for byte in data) if self.mode == "lying" else data)
            await sink.drain()
        # What is half closed is closed: neither gRPC nor HTTP/1.1 keeps it so.
        raise ConnectionResetError


async def _main(ends: dict[str, Ends]) -> None:
    hops = {name: Hop(each) for name, each in ends.items()}
    for hop in hops.values():
        await hop.listen()
    print("ok", flush=True)
    orders = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(orders)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while line := await orders.readline():
        order = json.loads(line)
        await hops[order["hop"]].become(order["mode"])
        print("ok", flush=True)


class Relays:
    """The process, driven from a test. Blocking."""

    def __init__(self, ends: dict[str, Ends]) -> None:
        self.ends = ends
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.relay", json.dumps(ends)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ok()

    def address(self, hop: str) -> str:
        """host:port that the near side connects to."""
        host, port, *_ = self.ends[hop]
        return f"{host}:{port}"

    def become(self, hop: str, mode: str) -> None:
        """Puts a hop into a mode of `MODES`; returns when it is in force."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"hop": hop, "mode": mode}) + "\n")
        self._process.stdin.flush()
        self._ok()

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _ok(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ok\n":
            raise RuntimeError("the relay has ended")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main({name: tuple(each) for name, each in json.loads(sys.argv[1]).items()}))
