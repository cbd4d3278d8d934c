"""The table, the plots and the JSON of a load run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.load import arms, mix
from benchmarks.load.client import DEADLINE_MS

OUT = Path("build/bench/load.json")
PAGE, PLOT = Path("docs/benchmarks/load.md"), Path("docs/benchmarks/load.svg")
BEGIN, END = "<!-- figures: make bench -->\n", "<!-- end of figures -->\n"


def summary(rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """The figures of one step."""
    times = sorted(row["ms"] for row in rows)
    levels = Counter(row["level"] for row in rows)

    def at(share: float) -> float:
        return float(round(times[min(len(times) - 1, int(share * len(times)))]))

    total = len(rows)
    return {
        "requests": total,
        "qps": round(total / seconds, 1),
        "p50_ms": at(0.5),
        "p95_ms": at(0.95),
        "p99_ms": at(0.99),
        "success": sum(row["good"] for row in rows) / total,
        "partial": sum(row.get("partial", False) for row in rows),
        "usd_per_thousand": round(sum(row["cost"] for row in rows) / total / 1000.0, 4),
        "hit_rate": levels["NONE"] / total,
        "levels": {name: round(count / total, 3) for name, count in sorted(levels.items())},
    }


def write(data: dict[str, Any], *, page: bool) -> None:
    """JSON always; the page's figures and the plot where asked."""
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(data, indent=1), encoding="utf-8")
    text = table(data)
    print(text)
    if page:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(before + BEGIN + "\n" + text + "\n" + END + after, encoding="utf-8")
        _plot(data)


def table(data: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        f"{data['seconds']} s a step, {data['loop']} loop, edge: {data['edge']}, deadline "
        f"{DEADLINE_MS} ms. Upstream simulated: {arms.TTFT_MS[0]} to {arms.TTFT_MS[1]} ms to the "
        f"first token, {arms.CHUNK_MS} ms a word, {arms.WORDS} words; prices {arms.PRICES}. Mix: "
        f"{mix.SIMPLE_SHARE:.0%} simple, {mix.REPEAT_SHARE:.0%} repeats (Zipf {mix.ZIPF} over "
        f"{mix.POPULAR} questions).",
        "",
        "| arm | callers | load | requests | QPS | p50 ms | p95 ms | p99 ms | success | partial | "
        "USD per 1,000 | hits | levels | RSS MB |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for step in data["steps"]:
        levels = ", ".join(f"{name} {share:.0%}" for name, share in step["levels"].items())
        memory = ", ".join(f"{name} {size}" for name, size in step["rss_mb"].items())
        lines.append(
            f"| {step['arm']} | {step['callers']} | {step['load_average']:.1f} | "
            f"{step['requests']} | {step['qps']} | {step['p50_ms']} | {step['p95_ms']} | "
            f"{step['p99_ms']} | {step['success']:.2%} | {step['partial']} | "
            f"{step['usd_per_thousand']} | {step['hit_rate']:.0%} | {levels} | {memory} |"
        )
    return "\n".join(lines) + "\n"


def _plot(data: dict[str, Any]) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for name in dict.fromkeys(step["arm"] for step in data["steps"]):
        steps = [step for step in data["steps"] if step["arm"] == name]
        callers = [step["callers"] for step in steps]
        left.plot(callers, [step["p95_ms"] for step in steps], marker="o", label=name)
        right.plot(callers, [step["usd_per_thousand"] for step in steps], marker="o", label=name)
    left.set(xlabel="callers", ylabel="p95, ms", ylim=(0, None))
    right.set(xlabel="callers", ylabel="US dollars per 1,000 requests", ylim=(0, None))
    left.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Date": None})
    plt.close(figure)
