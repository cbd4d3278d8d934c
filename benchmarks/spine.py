"""Overrun, loop lag and slot release with saturated cores: `make bench-spine`.

Three real service processes, a fake model that burns both cores, a scripted
upstream. Each process is stopped in turn (SIGSTOP) while calls with a deadline of
300 ms come in. Prints a Markdown table and writes build/bench/spine.json.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import grpc

from tandem.router.v1 import router_pb2, router_pb2_grpc
from tests.e2e.harness import Tandem, eventually, question

DEADLINE_MS = 300
CALLERS = 8
EDGE_QUESTION = "hello [[say:" + "A sentence is here. " * 10 + "]]"
QUESTIONS = {"edge": EDGE_QUESTION, "cloud": "计算三笔分期的实际年化利率"}
BURN = {"TANDEM_FAKE_EDGE__DECODE_MS": "20", "TANDEM_FAKE_EDGE__PREFILL_TOKEN_MS": "0.5"}
OUT = Path("build/bench/spine.json")


@contextmanager
def running() -> Iterator[tuple[Tandem, Path]]:
    """A system for a while; its logs stay readable afterwards."""
    run_dir = Path(tempfile.mkdtemp(prefix="tandem-spine-"))
    tandem = Tandem(run_dir, BURN)
    try:
        yield tandem, run_dir
    finally:
        tandem.close()


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` of `values` lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def overruns(call: Callable[[], float], count: int) -> list[float]:
    """Milliseconds past the deadline of `count` pooled calls; below 0 where in time."""
    with ThreadPoolExecutor(CALLERS) as pool:
        taken = list(pool.map(lambda _: call(), range(count)))
    return [seconds * 1000.0 - DEADLINE_MS for seconds in taken]


def control(count: int) -> list[float]:
    """The client alone: calls to a port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        channel = grpc.insecure_channel(f"127.0.0.1:{silent.getsockname()[1]}")
        stub: Any = router_pb2_grpc.RouterServiceStub(channel)

        def call() -> float:
            started = time.monotonic()
            with suppress(grpc.RpcError):
                stub.Route(router_pb2.RouteRequest(), timeout=DEADLINE_MS / 1000.0)
            return time.monotonic() - started

        found = overruns(call, count)
        channel.close()
    return found


def scenario(tandem: Tandem, stopped: str, text: str, count: int) -> list[float]:
    """Calls while one process is stopped."""

    def call() -> float:
        return tandem.stream(question(text), deadline_ms=DEADLINE_MS).seconds

    with tandem.stopped(stopped) if stopped else nullcontext():
        found = overruns(call, count)
    eventually(tandem.edge_idle, "slots given back", 30)
    if stopped == "edge":
        tandem.restart_edge()
    return found


def slot_release_ms(tandem: Tandem, count: int) -> list[float]:
    """From cancel at the caller to an empty lane, as WatchLoad (10 Hz) tells it."""
    found = []
    for _ in range(count):
        call = tandem.stub.RouteStream(
            router_pb2.RouteStreamRequest(request=question(EDGE_QUESTION)), timeout=20
        )
        next(call)
        eventually(lambda: sum(lane.active for lane in tandem.lanes()) > 0, "a slot taken")
        cancelled = time.monotonic()
        call.cancel()
        eventually(tandem.edge_idle, "slot given back")
        found.append((time.monotonic() - cancelled) * 1000.0)
    return found


def loop_lags(run_dir: Path) -> dict[str, float]:
    """Worst event-loop lag of each process over its life, from its last log line."""
    lags = {}
    for name in ("router", "edge", "cloud"):
        for line in (run_dir / f"{name}.log").read_text().splitlines():
            if '"stopped"' in line:
                lags[name] = json.loads(line)["worst_loop_lag_ms"]
    return lags


def main() -> None:
    """Runs all scenarios and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200, help="calls of each scenario")
    calls = parser.parse_args().calls
    rows: dict[str, list[float]] = {"client alone (control)": control(calls)}
    with running() as (tandem, run_dir):
        for place, text in QUESTIONS.items():
            rows[f"{place} question, nothing stopped"] = scenario(tandem, "", text, calls)
        release = slot_release_ms(tandem, 20)
    lags = loop_lags(run_dir)
    # A stopped process has no lag of its own to tell, so the stops have a system of their own.
    with running() as (tandem, _):
        for stopped in ("edge", "cloud", "upstream", "router"):
            for place, text in QUESTIONS.items():
                name = f"{place} question, {stopped} stopped"
                rows[name] = scenario(tandem, stopped, text, calls)
    report(rows, release, lags)


def report(rows: dict[str, list[float]], release: list[float], lags: dict[str, float]) -> None:
    """Prints Markdown and writes JSON."""
    print(
        f"| {DEADLINE_MS} ms deadline, {CALLERS} callers | calls | p50 | p99 | worst overrun ms |"
    )
    print("|---|---|---|---|---|")
    figures = {}
    for name, values in rows.items():
        p50, p99, worst = statistics.median(values), percentile(values, 0.99), max(values)
        figures[name] = {"calls": len(values), "p50": p50, "p99": p99, "worst": worst}
        print(f"| {name} | {len(values)} | {p50:.0f} | {p99:.0f} | {worst:.0f} |")
    print(f"\ncancel → slot free, as told at 10 Hz: median {statistics.median(release):.0f} ms")
    print(f"worst event-loop lag, ms: {lags}")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    data = {"overrun_ms": figures, "slot_release_ms": release, "loop_lag_ms": lags}
    OUT.write_text(json.dumps(data, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
