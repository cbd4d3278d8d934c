"""Table, JSON and plot of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.edge.lanes import LaneResult
from benchmarks.edge.throughput import STREAMS, Speed

Speeds = Mapping[str, Mapping[int, Speed]]
TITLES = {
    "ours": "ours, q8",
    "llama_cpp_q8_0": "llama.cpp Q8_0",
    "llama_cpp_q4_0": "llama.cpp Q4_0",
}
LANES = {
    "simple_p99_ttft_ms_idle": "idle",
    "simple_p99_ttft_ms_flooded": "complex lane flooded",
    "simple_p99_ttft_ms_one_lane": "same load, one common lane",
}


def markdown(speeds: Speeds, lanes: Mapping[str, LaneResult], notes: list[str]) -> str:
    """All tables; parts that did not run are left out."""
    parts = [_throughput(speeds)] if speeds else []
    if lanes:
        parts.append(_lane_table(lanes))
    return "\n\n".join([*parts, *notes]) + "\n"


def _throughput(speeds: Speeds) -> str:
    head = "".join(f" {n} |" for n in STREAMS)
    lines = [f"| streams |{head}", "|---|" + "---|" * len(STREAMS)]

    def row(title: str, cells: list[str]) -> None:
        lines.append(f"| {title} | " + " | ".join(cells) + " |")

    for name, by_streams in speeds.items():
        row(f"{TITLES[name]}, tokens/s", [f"{by_streams[n].tokens_per_s:.0f}" for n in STREAMS])
    for name, by_streams in speeds.items():
        cells = [f"{by_streams[n].best_tokens_per_s:.0f}" for n in STREAMS]
        row(f"{TITLES[name]}, tokens/s in the best tenth", cells)
    for peer in list(speeds)[1:]:
        ratio = {n: speeds["ours"][n].tokens_per_s / speeds[peer][n].tokens_per_s for n in STREAMS}
        row(f"ours / {TITLES[peer]}", [f"{ratio[n]:.2f}" for n in STREAMS])
    for name, by_streams in speeds.items():
        row(f"{TITLES[name]}, TTFT ms", [f"{by_streams[n].ttft_ms:.0f}" for n in STREAMS])
    for name, by_streams in speeds.items():
        row(f"{TITLES[name]}, TPOT ms", [f"{by_streams[n].tpot_ms:.1f}" for n in STREAMS])
    return "\n".join(lines)


def _lane_table(lanes: Mapping[str, LaneResult]) -> str:
    lines = [
        "| short requests | p50 TTFT ms | p99 TTFT ms | calls | long prompts read |",
        "|---|---|---|---|---|",
    ]
    for key, one in lanes.items():
        lines.append(
            f"| {LANES[key]} | {one.p50_ms:.0f} | {one.p99_ms:.0f} | {one.calls} | "
            f"{one.long_done} |"
        )
    return "\n".join(lines)


def write_json(path: Path, speeds: Speeds, lanes: Mapping[str, LaneResult]) -> None:
    """Replaces the parts that ran; those of an earlier run stay."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    for name, by_streams in speeds.items():
        found[name] = {str(n): round(one.tokens_per_s, 1) for n, one in by_streams.items()}
        found[f"{name}_ttft_ms"] = {str(n): round(s.ttft_ms, 1) for n, s in by_streams.items()}
        found[f"{name}_tpot_ms"] = {str(n): round(s.tpot_ms, 2) for n, s in by_streams.items()}
    if lanes:
        figures = {key: round(one.p99_ms, 1) for key, one in lanes.items()}
        found["lanes"] = found.get("lanes", {}) | figures
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def plot(path: Path, speeds: Speeds) -> None:
    """Tokens/s over streams, one line an engine."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "tandem"
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    for name, by_streams in speeds.items():
        values = [by_streams[n].tokens_per_s for n in STREAMS]
        axes.plot(STREAMS, values, marker="o", label=TITLES[name])
    axes.set_xscale("log", base=2)
    axes.set_xticks(STREAMS, [str(n) for n in STREAMS])
    axes.set_xlabel("streams")
    axes.set_ylabel("decoded tokens/s, context 128")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)
