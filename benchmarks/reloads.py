"""`python -m benchmarks.reloads`: 1,000 swaps of the policy while 50 calls a second come in.

Three real processes; the policy is a mounted ConfigMap whose link is swapped every 100 ms, as
the kubelet does. Counts the calls that failed and those whose decision and outcome name
different versions, and how many versions the router took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from services.router.policy_store import load_policy
from tandem.router.v1 import router_pb2, router_pb2_grpc
from tests.e2e.harness import PATIENT_MS, Tandem, question
from tests.e2e.test_reload import BROKEN, SHIPPED, STRICT, THRESHOLDS, ConfigMap

FAST_EDGE = {"TANDEM_FAKE_EDGE__DECODE_MS": "1", "TANDEM_FAKE_EDGE__BURN": "false"}
POLL_MS = 50
SWAP_S = 0.1
OUT = Path("build/bench/reloads.json")


@dataclass(slots=True)
class Counts:
    """What came of the calls."""

    calls: int = 0
    failed: int = 0
    mixed: int = 0
    versions: Counter[str] = field(default_factory=Counter)


async def call(stub: Any, counts: Counts) -> None:
    """One streamed call: the version of its decision must be that of its outcome."""
    request = router_pb2.RouteStreamRequest(request=question("hello [[say:Hi.]]"))
    metadata = (("deadline_ms", str(PATIENT_MS)),)
    counts.calls += 1
    planned = final = ""
    try:
        async for event in stub.RouteStream(request, timeout=60, metadata=metadata):
            if event.HasField("decision"):
                planned = event.decision.decision.policy_version
            if event.HasField("final"):
                final = event.final.outcome.decision.policy_version
    except grpc.aio.AioRpcError:
        counts.failed += 1
        return
    counts.mixed += planned != final
    counts.versions[final] += 1


async def load(address: str, per_s: float, stop: asyncio.Event, counts: Counts) -> None:
    """Open loop: calls come at their time, however long others take."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub, calls = router_pb2_grpc.RouterServiceStub(channel), set[asyncio.Task[None]]()
        clock = asyncio.get_running_loop().time
        due = clock()
        while not stop.is_set():
            task = asyncio.create_task(call(stub, counts))
            calls.add(task)
            task.add_done_callback(calls.discard)
            due += 1.0 / per_s
            await asyncio.sleep(max(0.0, due - clock()))
        await asyncio.gather(*calls)


async def swap(config_map: ConfigMap, reloads: int) -> None:
    """Two good policies in turn, every tenth a broken one."""
    for number in range(reloads):
        config_map.put(BROKEN if number % 10 == 9 else STRICT if number % 2 else SHIPPED)
        await asyncio.sleep(SWAP_S)


async def run(tandem: Tandem, config_map: ConfigMap, reloads: int, per_s: float) -> Counts:
    """Swaps under load."""
    counts, stop = Counts(), asyncio.Event()
    loading = asyncio.create_task(load(tandem.router.address, per_s, stop, counts))
    await swap(config_map, reloads)
    stop.set()
    await loading
    return counts


def good_versions(folder: Path) -> set[str]:
    """Of the two policies that may be in force."""
    found = set()
    for text in (SHIPPED, STRICT):
        (folder / "one.yaml").write_text(text, encoding="utf-8")
        found.add(load_policy(folder / "one.yaml", THRESHOLDS).version)
    return found


def main() -> int:
    """Prints the counts; exit code 1 where a call failed, mixed, or met an unknown version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reloads", type=int, default=1_000)
    parser.add_argument("--per-s", type=float, default=50.0)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tandem-reloads-"))
    config_map = ConfigMap(folder)
    router = {
        "TANDEM_ROUTER__POLICY_FILE": str(config_map.file),
        "TANDEM_ROUTER__THRESHOLDS_FILE": str(config_map.thresholds_file),
        "TANDEM_ROUTER__POLICY_POLL_MS": str(POLL_MS),
    }
    tandem = Tandem(folder, FAST_EDGE, router=router)
    try:
        counts = asyncio.run(run(tandem, config_map, options.reloads, options.per_s))
        log = tandem.router.log_file.read_text(encoding="utf-8")
    finally:
        tandem.close()
    found = {
        "reloads": options.reloads,
        "calls": counts.calls,
        "failed": counts.failed,
        "mixed": counts.mixed,
        "unknown_versions": sum(
            many
            for version, many in counts.versions.items()
            if version not in good_versions(folder)
        ),
        "versions_seen": len(counts.versions),
        "taken": log.count('"policy_loaded"'),
        "refused": log.count('"policy_refused"'),
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=2))
    print(json.dumps(found))
    return 1 if found["failed"] or found["mixed"] or found["unknown_versions"] else 0


if __name__ == "__main__":
    sys.exit(main())
