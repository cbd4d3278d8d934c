"""`make bench`: four arms at 20, 50 and 100 callers. `--seconds 900` for a real run."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.load import report
from benchmarks.load.arms import ARMS, Arm, rss_mb, running

PROCESSES = 2


def step(address: str, callers: int, options: argparse.Namespace, folder: Path) -> list[Any]:
    """One load for its time, by client processes of their own."""
    children = []
    for number in range(PROCESSES):
        out = folder / f"{callers}-{number}.json"
        rate = options.rate * callers / PROCESSES if options.open else 0.0
        order = {
            "address": address,
            "callers": callers // PROCESSES,
            "rate": rate,
            "seconds": options.seconds,
            "think_ms": options.think_ms,
            "seed": 1_000 * callers + number,
            "samples": str(options.from_samples) if options.from_samples else "",
            "out": str(out),
        }
        file = folder / f"{callers}-{number}.order"
        file.write_text(json.dumps(order), encoding="utf-8")
        child = subprocess.Popen([sys.executable, "-m", "benchmarks.load.client", str(file)])
        children.append((child, out))
    rows: list[Any] = []
    for child, out in children:
        if child.wait(options.seconds + 60):
            raise RuntimeError("a client process failed")
        rows += json.loads(out.read_text(encoding="utf-8"))
    return rows


def run_arm(arm: Arm, options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """All steps of an arm on one system."""
    found = []
    with running(arm, folder, options.edge) as (system, address, _):
        time.sleep(2.0)
        for callers in options.callers:
            rows = step(address, callers, options, folder)
            figures = report.summary(rows, options.seconds)
            more = {
                "arm": arm.name,
                "callers": callers,
                "load_average": os.getloadavg()[0],
                "rss_mb": rss_mb(system),
            }
            found.append(more | figures)
            print(f"{arm.name}, {callers}: {figures}", flush=True)
    return found


def main() -> None:
    """Runs the arms and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=40.0, help="of each step")
    parser.add_argument("--callers", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--think-ms", type=float, default=2_000.0, help="mean pause of a caller")
    parser.add_argument("--open", action="store_true", help="arrivals at a rate, not callers")
    parser.add_argument("--rate", type=float, default=0.3, help="arrivals/s for each caller")
    parser.add_argument("--edge", choices=["real", "burn"], default="real")
    parser.add_argument("--from-samples", type=Path, help="JSON lines of redacted requests")
    parser.add_argument("--arms", default="", help="beginnings of names, by comma")
    parser.add_argument("--page", action="store_true", help="write docs/benchmarks/load.md too")
    options = parser.parse_args()
    wanted = tuple(each for each in options.arms.split(",") if each)
    data: dict[str, Any] = {
        "seconds": options.seconds,
        "loop": "open" if options.open else f"closed, mean pause {options.think_ms:.0f} ms,",
        "edge": {"real": "SmolLM2-135M 8 bit", "burn": "fake, burns the cores"}[options.edge],
        "steps": [],
    }
    with tempfile.TemporaryDirectory(prefix="tandem-load-") as folder:
        for number, arm in enumerate(ARMS):
            if not wanted or arm.name.startswith(wanted):
                data["steps"] += run_arm(arm, options, Path(folder) / str(number))
    report.write(data, page=options.page)


if __name__ == "__main__":
    main()
