"""`make bench-edge`: our engine beside llama.cpp on the same weights, and lane isolation.

    python -m benchmarks.edge [--only throughput|lanes] [--rounds N] [--calls N]

Writes `build/bench/edge.{md,json,svg}` and prints the table.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from contextlib import ExitStack
from pathlib import Path

from benchmarks.edge import lanes, report
from benchmarks.edge.lanes import LaneResult
from benchmarks.edge.llama_cpp import LlamaCpp, PeerUnavailable, prepare
from benchmarks.edge.ours import running
from benchmarks.edge.throughput import (
    ROW_TOKENS,
    STREAMS,
    RunBurst,
    Speed,
    burst_ours,
    burst_peer,
    measure,
    one_lane,
)
from services.edge_worker.kit.build import build_model, default_root, model_dir
from services.edge_worker.runtime.onnx import OnnxOptions, OnnxRuntime
from services.edge_worker.runtime.session import cpu_quota

FOLDER = Path("build/bench")


async def throughput(
    runtime: OnnxRuntime, rounds: int, threads: int, notes: list[str]
) -> dict[str, dict[int, Speed]]:
    """Ours and, where they can be had, the peers."""
    vocab, most = runtime.info.vocab_size, max(STREAMS)
    with ExitStack() as stack:
        peers: dict[str, RunBurst] = {}
        try:
            library, paths = prepare(FOLDER / "llama.cpp")
            for name, path in paths.items():
                peer = LlamaCpp(library, path, most, ROW_TOKENS, threads, vocab)
                stack.callback(peer.close)
                peers[f"llama_cpp_{name}"] = burst_peer(peer)
            notes.append(f"llama.cpp uses: {library.llama_print_system_info().decode().strip()}")
        except PeerUnavailable as error:
            notes.append(f"Ours alone: {error}")
        async with running(runtime, [one_lane(most, ROW_TOKENS)]) as engine:
            return await measure({"ours": burst_ours(engine), **peers}, rounds, vocab)


async def isolation(runtime: OnnxRuntime, calls: int) -> dict[str, LaneResult]:
    """The three cases, one after another."""
    idle, flooded, common = report.LANES
    return {
        idle: await lanes.idle(runtime, calls),
        flooded: await lanes.flooded(runtime, calls),
        common: await lanes.one_common_lane(runtime, calls),
    }


async def run(options: argparse.Namespace) -> None:
    """Measures and reports."""
    folder = model_dir(default_root())
    built = build_model(folder)
    threads = cpu_quota()
    runtime = OnnxRuntime.load(folder, OnnxOptions(threads=threads))
    notes = [
        f"{built.manifest.model_id}, {threads} threads each, {options.rounds} rounds; load of the "
        # Peers spin at barriers: beside other work they fall to a tenth, and ratios say nothing.
        f"machine before it {os.getloadavg()[0]:.1f} (figures count below 0.5)"
    ]
    speeds, lane_results = {}, {}
    if options.only != "lanes":
        speeds = await throughput(runtime, options.rounds, threads, notes)
        report.plot(FOLDER / "edge.svg", speeds)
    if options.only != "throughput":
        lane_results = await isolation(runtime, options.calls)
    text = report.markdown(speeds, lane_results, notes)
    (FOLDER / "edge.md").write_text(text, encoding="utf-8")
    report.write_json(FOLDER / "edge.json", speeds, lane_results)
    print(text)


def main() -> None:
    """Reads the options and runs."""
    parser = argparse.ArgumentParser(prog="benchmarks.edge")
    parser.add_argument("--only", choices=("throughput", "lanes"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=lanes.LEAST_CALLS)
    FOLDER.mkdir(parents=True, exist_ok=True)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
