"""`make simulate`: a million requests, half each, through scheduler and router in virtual time.

Each portion has a seed of its own, which is printed where an invariant breaks; then
`python -m tests.simulation --part edge --seed N --requests 10000` shows it again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.simulation.edge import Broken
from tests.simulation.portion import portion

PORTION = 10_000
OUT = Path("build/bench/simulate.json")


def simulate(part: str, requests: int, seed: int, processes: int) -> dict[str, Any]:
    """All portions of a part; Broken where one broke."""
    size = min(PORTION, requests)
    tasks = [(part, seed + number, size) for number in range(-(-requests // size))]
    started, ends = time.monotonic(), Counter[str]()
    sums: Counter[str] = Counter()
    gap_ms = 0.0
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for done in pool.imap_unordered(portion, tasks):
            if "broken" in done:
                raise Broken(done["broken"])
            ends.update(done["ends"])
            sums.update({name: done.get(name, 0) for name in ("steps", "missed")})
            gap_ms = max(gap_ms, done.get("gap_ms", 0.0))
    return {
        "requests": size * len(tasks),
        "seeds": [seed, seed + len(tasks) - 1],
        "seconds": round(time.monotonic() - started, 1),
        "steps": sums["steps"],
        "ends": dict(ends.most_common()),
        "longest_gap_virtual_ms": round(gap_ms, 1),
        "last_resort_while_a_tier_was_well": sums["missed"],
    }


def main() -> int:
    """Runs both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["edge", "router"])
    parser.add_argument("--requests", type=int, default=500_000, help="of each part")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for part in [options.part] if options.part else ["edge", "router"]:
        try:
            found[part] = simulate(part, options.requests, options.seed, options.processes)
        except Broken as broken:
            print(f"broken: {broken}")
            return 1
        print(f"{part}: {json.dumps(found[part])}", flush=True)
    found["load_average"] = list(os.getloadavg())
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
