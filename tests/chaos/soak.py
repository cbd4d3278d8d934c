"""`make soak`: callers at half load and a fault every minute; memory, files and threads flat.

An hour by hand (`MINUTES=60`). What each process holds is read at rest after a fault was
cleared; the first quarter warms up and does not count. Writes build/bench/soak.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.chaos.cells import Cell
from tests.chaos.faults import fault_of
from tests.chaos.leaks import held_by
from tests.chaos.load import Answer, Callers, Stage
from tests.chaos.world import World

OUT = Path("build/bench/soak.json")
CALLERS, PAUSE_S = 10, 1.0
# None that ends a process that is watched: a new one has nothing to leak.
FAULTS = (
    *(Cell("edge", fault, "stream") for fault in ("paused", "slow", "stalled", "cut", "refusing")),
    *(Cell("cloud", fault, "stream") for fault in ("paused", "stalled", "cut", "lying")),
    *(Cell("upstream", fault, "stream") for fault in ("killed", "cut", "lying", "stalled")),
    *(Cell("redis", fault, "before") for fault in ("killed", "stopped", "slow")),
    *(Cell("postgres", fault, "before") for fault in ("killed", "stopped", "cut")),
)
_WATCHED = ("router", "edge", "cloud")


class Soak:
    """One run over one world."""

    def __init__(self, world: World, minutes: float, every_s: float, seed: int) -> None:
        self._world, self._rng = world, random.Random(seed)
        self._until = time.monotonic() + 60.0 * minutes
        self._every_s = every_s
        self.answers: list[Answer] = []
        self.samples: list[dict[str, Any]] = []
        self.faults: list[str] = []

    async def run(self) -> None:
        """Callers and faults side by side."""
        callers = Callers([self._world.relays.address("router")])
        await callers.ready()
        asking = [asyncio.create_task(self._ask(callers, number)) for number in range(CALLERS)]
        while time.monotonic() < self._until:
            await asyncio.sleep(self._every_s / 2)
            await self._fault()
            await asyncio.sleep(self._every_s / 2)
            held = {name: held_by(self._world.pid(name)).as_dict() for name in _WATCHED}
            self.samples.append(held)
            print(f"{len(self.answers)} answers, after {self.faults[-1]}: {held}", flush=True)
        await asyncio.gather(*asking)
        await callers.close()

    async def _ask(self, callers: Callers, number: int) -> None:
        turn = 0
        while time.monotonic() < self._until:
            turn += 1
            self.answers += await callers.wave(f"soak-{number}-{turn}", 1, Stage())
            await asyncio.sleep(self._rng.expovariate(1.0 / PAUSE_S))

    async def _fault(self) -> None:
        cell = self._rng.choice(FAULTS)
        self.faults.append(cell.name)
        fault = fault_of(self._world, cell)
        await asyncio.to_thread(fault.apply)
        await asyncio.sleep(min(10.0, self._every_s / 4))
        await asyncio.to_thread(fault.clear)


def growth(samples: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Median of the last quarter less that of the second, by process and measure."""
    quarter = max(1, len(samples) // 4)
    early, late = samples[quarter : 2 * quarter] or samples[:1], samples[-quarter:]

    def middle(part: list[dict[str, Any]], name: str, what: str) -> float:
        values = sorted(each[name][what] for each in part)
        return float(values[len(values) // 2])

    return {
        name: {
            what: middle(late, name, what) - middle(early, name, what) for what in samples[0][name]
        }
        for name in _WATCHED
    }


def main() -> int:
    """Runs it; exit code 1 where something hung, was lost, or grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every-s", type=float, default=60.0, help="between two faults")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tandem-soak-")) / "world"
    with closing(World(folder)) as world:
        soak = Soak(world, options.minutes, options.every_s, options.seed)
        asyncio.run(soak.run())
        wanted = {one.request_id for one in soak.answers if one.kind != "none"}
        lost = len(wanted - set(world.wait_stored(wanted)))
    grown = growth(soak.samples)
    good = sum(one.good for one in soak.answers)
    found = {
        "minutes": options.minutes,
        "seed": options.seed,
        "requests": len(soak.answers),
        "answered_within_budget": good / len(soak.answers),
        "hung": sum(one.hung for one in soak.answers),
        "ledger_rows_lost": lost,
        "growth": grown,
        "faults": soak.faults,
        "load_average": os.getloadavg(),
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(json.dumps(found, indent=1))
    leaks = any(each["fds"] > 10 or each["rss_mb"] > 30 for each in grown.values())
    return int(leaks or found["hung"] or lost)


if __name__ == "__main__":
    sys.exit(main())
