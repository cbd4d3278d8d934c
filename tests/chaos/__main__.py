"""`make chaos`: every process, store and hop hit by every fault at every stage.

Writes build/bench/chaos.json and chaos.md. `CELLS=edge` or `CELLS=edge.killed,redis` runs
the cells whose names begin so; `CELLS=smoke` runs four quick ones.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.chaos import cells as matrix
from tests.chaos import faults, report
from tests.chaos.cells import Cell
from tests.chaos.leaks import held_by
from tests.chaos.load import Callers, Stage, control
from tests.chaos.run import Outcome, count_rows, run_cells
from tests.chaos.world import World, can_mount

SMOKE = (
    "edge.killed.stream",
    "cloud.cut.stream",
    "upstream.refusing.before",
    "postgres.killed.prefill",
)
_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
_SERVICES = ("router", "edge", "cloud")


def wanted(cells: list[Cell], only: Sequence[str]) -> list[Cell]:
    """Those whose names begin so; all without any."""
    starts = SMOKE if list(only) == ["smoke"] else tuple(only)
    return [cell for cell in cells if not starts or cell.name.startswith(starts)]


class Matrix:
    """One run: worlds one after the other, and what they gave."""

    def __init__(self, only: Sequence[str], requests: int) -> None:
        self._only, self._requests = only, requests
        self.outcomes: list[Outcome] = []
        self.leaks: dict[str, Any] = {}
        self.skipped: list[tuple[str, str, str]] = []
        self._folder = Path(tempfile.mkdtemp(prefix="tandem-chaos-"))

    async def run(self) -> None:
        """All worlds."""
        main, routers = (
            wanted(matrix.main_cells(), self._only),
            wanted(matrix.router_cells(), self._only),
        )
        if not can_mount():
            self.skipped.append(("disk", "full", "no small disk can be mounted without root"))
            main = [cell for cell in main if cell.component != "disk"]
        if main or routers:
            await self._main(main, routers)
        await self._clock(wanted(matrix.clock_cells(), self._only))
        await self._loss(wanted(matrix.loss_cells(), self._only))

    async def _main(self, main: list[Cell], routers: list[Cell]) -> None:
        with closing(await asyncio.to_thread(World, self._folder / "main")) as world:
            callers = Callers([world.relays.address("router")])
            for number in range(3):
                await callers.wave(f"warm-{number}", 50, Stage())
            before = {name: held_by(world.pid(name)).as_dict() for name in _SERVICES}
            await self._cells(world, main, [world.relays.address("router")])
            if main:
                await callers.wave("end", 50, Stage())
                await asyncio.sleep(2.0)
                after = {name: held_by(world.pid(name)).as_dict() for name in _SERVICES}
                self.leaks["main"] = {"before": before, "after": after}
            await callers.close()
            if routers:
                await asyncio.to_thread(world.start, "router-2")
                await asyncio.to_thread(world.wait_well, "router-2")
                both = [f"127.0.0.1:{world.ports[name]}" for name in ("router", "router-2")]
                await self._cells(world, routers, both)

    async def _cells(
        self, world: World, cells: list[Cell], addresses: list[str], clocks: Path | None = None
    ) -> None:
        found: list[Outcome] = []

        def told(outcome: Outcome) -> None:
            found.append(outcome)
            tell(outcome)

        try:
            await run_cells(world, cells, addresses, self._requests, told, clocks)
        finally:
            # Also where the run is cut short by Ctrl-C: what was done is counted and written.
            count_rows(world, found)
            self.outcomes += found

    async def _clock(self, cells: list[Cell]) -> None:
        if not cells:
            return
        if not _has_faketime():
            self.skipped.append(("clock", "jumped", f"{_FAKETIME} is not installed (libfaketime)"))
            return
        folder = self._folder / "clocks"
        folder.mkdir()
        world = await asyncio.to_thread(ClockWorld, self._folder / "clock-world", folder)
        with closing(world):
            await self._cells(world, cells, [world.relays.address("router")], folder)

    async def _loss(self, cells: list[Cell]) -> None:
        if not cells:
            return
        if os.geteuid() or not (shutil.which("nft") and shutil.which("ip")):
            self.skipped.append(("network", "loss", "needs root, ip and nft (Debian: nftables)"))
            return
        faults.make_namespace()
        try:
            wrap = ("ip", "netns", "exec", faults.NAMESPACE)
            options: dict[str, Any] = {"host": faults.FAR, "wrap": wrap, "near": faults.NEAR}
            options["environment"] = {}
            world = await asyncio.to_thread(
                lambda: LossWorld(self._folder / "loss-world", **options)
            )
            with closing(world):
                await self._cells(world, cells, [world.relays.address("router")])
        finally:
            faults.remove_namespace()


def _has_faketime() -> bool:
    return _FAKETIME.exists()


class LossWorld(World):
    """Edge and cloud proxy behind a wire; Redis stays on the near side, out of reach of it."""

    def _cloud(self, name: str) -> tuple[list[str], dict[str, str]]:
        arguments, environment = super()._cloud(name)
        del environment["TANDEM_REDIS_URL"]
        return arguments, environment


class ClockWorld(World):
    """Each service reads its wall clock through a file of its own."""

    def __init__(self, run_dir: Path, clocks: Path) -> None:
        self._clocks = clocks
        for name in _SERVICES:
            (clocks / name).write_text("+0")
        super().__init__(run_dir)

    def start(self, name: str) -> Any:
        """With libfaketime before it; the monotonic clock is left alone."""
        # The fake edge's sleeps fail under libfaketime; its clock is not among the cells.
        self._more = (
            {}
            if name == "edge"
            else {
                "LD_PRELOAD": str(_FAKETIME),
                "FAKETIME_TIMESTAMP_FILE": str(self._clocks / name),
                "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "DONT_FAKE_MONOTONIC": "1",
            }
        )
        return super().start(name)


def tell(outcome: Outcome) -> None:
    """One line for each cell as it ends."""
    row = report.row_of(outcome)
    mark = " " if row["answered_within_budget"] >= report.TARGET and not row["hung"] else "!"
    print(
        f"{mark} {outcome.cell.name:42} {row['answered_within_budget']:6.1%} in budget, model "
        f"{row['answered_by_model']}, cache {row['from_fresh_cache']}, partial {row['partial']}, "
        f"canned {row['canned']}, none {row['not_answered']}, hung {row['hung']}, overrun "
        f"{row['overrun_p999_ms']:.0f} ms, {outcome.seconds:.1f} s",
        flush=True,
    )
    short = Counter(f"{one.kind} {one.code} {one.why}" for one in outcome.answers if not one.good)
    for why, count in short.most_common(4):
        print(f"      {count} × {why}", flush=True)


def main() -> int:
    """Runs the matrix; exit code 1 where a cell misses its target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="beginnings of cells' names, by comma; smoke")
    parser.add_argument("--requests", type=int, default=200, help="of each cell")
    parser.add_argument("--control", type=int, default=10_000, help="calls of the control")
    parser.add_argument("--out", type=Path, default=report.OUT)
    options = parser.parse_args()
    started = time.monotonic()
    run = Matrix([each for each in options.only.split(",") if each], options.requests)
    try:
        asyncio.run(run.run())
    except KeyboardInterrupt:
        print("cut short", flush=True)
    control_ms = asyncio.run(control(options.control, 50, 200)) if options.control else []
    missed = report.write(run.outcomes, control_ms, run.leaks, run.skipped, options.out)
    seconds = time.monotonic() - started
    file = options.out / "chaos.md"
    print(f"{len(run.outcomes)} cells in {seconds:.0f} s, {missed} miss a target: {file}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
