"""What the router costs beside a bare grpc.aio hop: `make bench-router`.

One caller, the same constant edge behind both, rounds of each in turn in one run. The
router's call is a rule-decided `RouteStream` with screening, decision, budget, ledger row
and log line; the hop's is `Generate` passed through. Apart: `Decide` where the task is to be
recognized and the complexity model asked, so that embedder and models run (target: 5 ms p50).
Latency as seen by the caller, CPU as the kernel accounts it for the process in between. Prints
Markdown, writes build/bench/router_overhead.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from benchmarks.litellm_peer import Peers
from cli.system import System
from tandem.edge.v1 import edge_pb2, edge_pb2_grpc
from tandem.router.v1 import router_pb2, router_pb2_grpc
from tests.e2e.harness import question

OUT = Path("build/bench/router_overhead.json")
QUESTION = "What is the capital of Japan?"
# No rule speaks: it is too long to be trivial, and asks for nothing that a list names.
HARDER = (
    "Our message queue stops once in a while when many producers write at the same time; threads "
    "wait for two locks and the queue grows. Tell me how you would find the cause, what to log, "
    "and which changes you would try first so that the service stays up in the meantime. We run "
    "three nodes, clients retry at once when a call fails, and the last release moved the index "
    "into a table of its own. Nobody has seen it in the test environment. "
)
WARM_CALLS = 300


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(call: Callable[[], None], count: int) -> list[float]:
    """Milliseconds of each of `count` calls in a row."""
    found = []
    for _ in range(count):
        started = time.perf_counter()
        call()
        found.append((time.perf_counter() - started) * 1000.0)
    return found


def start(system: System) -> tuple[dict[str, Callable[[], None]], dict[str, int]]:
    """Starts the processes; returns what to call, and the pids of what is measured."""
    edge = system.start("edge", ["-m", "benchmarks.constant_edge", "edge"], {})
    address = system.wait_ready(edge)
    hop = system.start("hop", ["-m", "benchmarks.constant_edge", "hop", address], {})
    environment = {
        "TANDEM_ROUTER__SERVER__LISTEN": "127.0.0.1:0",
        "TANDEM_ROUTER__EDGE__ADDRESS": address,
        "TANDEM_ROUTER__LEDGER_URL": f"sqlite:///{system.run_dir / 'ledger.db'}",
        # Every call must take the whole way.
        "TANDEM_ROUTER__CACHE__ENABLED": "false",
    }
    router = system.start("router", ["-m", "services.router.main"], environment)
    hop_stub: Any = edge_pb2_grpc.EdgeWorkerServiceStub(
        grpc.insecure_channel(system.wait_ready(hop))
    )
    router_stub: Any = router_pb2_grpc.RouterServiceStub(
        grpc.insecure_channel(system.wait_ready(router))
    )
    generate = edge_pb2.GenerateRequest(messages=question(QUESTION).messages)
    route = router_pb2.RouteStreamRequest(request=question(QUESTION, task_type="open_question"))
    metadata = [("deadline_ms", "8000")]
    calls: dict[str, Callable[[], None]] = {
        "hop": lambda: _drain(hop_stub.Generate(generate, timeout=8)),
        "router": lambda: _drain(router_stub.RouteStream(route, timeout=8, metadata=metadata)),
    }
    explained = router_pb2.DecideRequest(request=question(HARDER))
    calls["decide, classified"] = lambda: router_stub.Decide(
        explained, timeout=8, metadata=metadata
    )
    pid = router.process.pid
    return calls, {"hop": hop.process.pid, "router": pid, "decide, classified": pid}


def _drain(call: Any) -> None:
    for _ in call:
        pass


def main() -> None:
    """Measures and prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=300, help="of each side in each round")
    parser.add_argument("--litellm", action="store_true", help="beside LiteLLM's proxy instead")
    options = parser.parse_args()
    if options.litellm:
        beside_litellm(options.rounds, options.calls // 3)
        return
    taken: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, float] = defaultdict(float)
    with tempfile.TemporaryDirectory() as folder:
        system = System(Path(folder))
        try:
            calls, pids = start(system)
            time.sleep(1.0)
            for call in calls.values():
                timed(call, WARM_CALLS)
            for _ in range(options.rounds):
                for name, call in calls.items():
                    before = cpu_seconds(pids[name])
                    taken[name] += timed(call, options.calls)
                    cpu[name] += cpu_seconds(pids[name]) - before
        finally:
            system.stop()
    report(taken, {name: spent / len(taken[name]) * 1e6 for name, spent in cpu.items()})


def beside_litellm(rounds: int, calls: int) -> None:
    """Added CPU and latency of LiteLLM's proxy and of ours in front of the same upstream."""
    taken: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, float] = defaultdict(float)
    with tempfile.TemporaryDirectory() as folder:
        system = System(Path(folder))
        peers = Peers(system, Path(folder))
        try:
            peers.start()
            for call in peers.calls.values():
                timed(call, WARM_CALLS // 3)
            for _ in range(rounds):
                for name, call in peers.calls.items():
                    before = {each: _spent(pids) for each, pids in peers.pids.items()}
                    taken[name] += timed(call, calls)
                    for each, pids in peers.pids.items():
                        if set(pids) <= set(peers.pids.get(name, ())):
                            cpu[each] += _spent(pids) - before[each]
            peers.close()
        finally:
            system.stop()
    _report_litellm(taken, {name: spent / rounds / calls * 1e3 for name, spent in cpu.items()})


def _spent(pids: tuple[int, ...]) -> float:
    return sum(map(cpu_seconds, pids))


def _report_litellm(taken: dict[str, list[float]], cpu_ms: dict[str, float]) -> None:
    direct = statistics.median(taken["upstream, direct"])
    print(f"load average {os.getloadavg()[0]:.1f}, one caller\n")
    print("| | p50 ms | p99 ms | added p50 ms | added CPU ms a call |\n|---|---|---|---|---|")
    for name, values in taken.items():
        p50, p99 = statistics.median(values), sorted(values)[int(0.99 * len(values))]
        spent = f"{cpu_ms[name]:.2f}" if name in cpu_ms else ""
        print(f"| {name} | {p50:.2f} | {p99:.2f} | {p50 - direct:.2f} | {spent} |")
    ratios = {
        name: spent / cpu_ms["LiteLLM"] for name, spent in cpu_ms.items() if name != "LiteLLM"
    }
    for name, ratio in ratios.items():
        print(f"\nadded CPU, {name} / LiteLLM: {ratio:.3f} ({cpu_ms[name]:.2f} ms)")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    data = {"cpu_ms": cpu_ms, "ratios": ratios, "load_average": os.getloadavg()}
    (OUT.parent / "litellm.json").write_text(json.dumps(data, indent=1), encoding="utf-8")


def report(taken: dict[str, list[float]], cpu_us: dict[str, float]) -> None:
    """Prints the table."""
    rows = {}
    for name, values in taken.items():
        ordered = sorted(values)
        p99 = ordered[int(0.99 * len(ordered))]
        rows[name] = {"p50": statistics.median(values), "p99": p99, "cpu_us": cpu_us[name]}
    print("| one caller | p50 ms | p99 ms | CPU µs a call |\n|---|---|---|---|")
    for name, row in rows.items():
        print(f"| {name} | {row['p50']:.2f} | {row['p99']:.2f} | {row['cpu_us']:.0f} |")
    ratios = {key: rows["router"][key] / rows["hop"][key] for key in rows["hop"]}
    print(f"| ratio | {ratios['p50']:.2f} | {ratios['p99']:.2f} | {ratios['cpu_us']:.2f} |")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({"rows": rows, "ratios": ratios}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
