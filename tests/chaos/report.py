"""The matrix as JSON and as a Markdown table."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from tests.chaos.cells import IMPOSSIBLE
from tests.chaos.load import DEADLINE_MS
from tests.chaos.run import Outcome

OUT = Path("build/bench")
TARGET = 0.995


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` of `values` lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def row_of(outcome: Outcome) -> dict[str, Any]:
    """One cell of `chaos.json`."""
    kinds = Counter(answer.kind for answer in outcome.answers)
    answers = outcome.answers
    return {
        "component": outcome.cell.component,
        "fault": outcome.cell.fault,
        "stage": outcome.cell.stage,
        "requests": len(answers),
        "answered_within_budget": sum(answer.good for answer in answers) / len(answers),
        "hung": sum(answer.hung for answer in answers),
        "ledger_rows_lost": outcome.lost,
        "overrun_p999_ms": round(percentile([a.overrun_ms for a in answers], 0.999), 1),
        "answered_by_model": kinds["model"],
        "from_fresh_cache": kinds["cache"],
        "partial": sum(answer.partial for answer in answers),
        "canned": kinds["canned"],
        "draft_or_stale": kinds["draft"] + kinds["stale"],
        "not_answered": kinds["none"],
        "ledger_rows_doubled": outcome.doubled,
        "tier_healthy": outcome.cell.healthy,
        "waves_that_missed_the_stage": outcome.missed,
    }


def bad(row: dict[str, Any]) -> bool:
    """Misses a target."""
    short = row["tier_healthy"] and row["answered_within_budget"] < TARGET
    return bool(short or row["hung"] or row["ledger_rows_lost"] or row["ledger_rows_doubled"])


def write(
    outcomes: list[Outcome],
    control_ms: list[float],
    leaks: dict[str, Any],
    skipped: list[tuple[str, str, str]],
    out: Path = OUT,
) -> int:
    """Writes both files; returns how many cells miss a target."""
    rows = [row_of(outcome) for outcome in outcomes]
    pooled = [answer.overrun_ms for outcome in outcomes for answer in outcome.answers]
    figures = {
        name: {
            "calls": len(values),
            **{f"p{q}": round(percentile(values, q / 100), 2) for q in (50, 99, 99.9)},
        }
        for name, values in (("system", pooled), ("null_rpc_control", control_ms))
    }
    impossible = [*IMPOSSIBLE, *skipped]
    missed = [row for row in rows if bad(row)]
    data = {
        "cells": rows,
        "overrun_ms": figures,
        "leaks": leaks,
        "impossible": [
            dict(zip(("component", "fault", "why"), each, strict=True)) for each in impossible
        ],
        "deadline_ms": DEADLINE_MS,
        "load_average": os.getloadavg(),
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "chaos.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    (out / "chaos.md").write_text(_markdown(rows, data, impossible), encoding="utf-8")
    return len(missed)


def _markdown(
    rows: list[dict[str, Any]], data: dict[str, Any], impossible: list[tuple[str, str, str]]
) -> str:
    total = sum(row["requests"] for row in rows)
    healthy = [row for row in rows if row["tier_healthy"]]
    lines = [
        f"{len(rows)} cells, {total} requests, deadline {DEADLINE_MS} ms, load average "
        f"{data['load_average'][0]:.1f}. Hung: {sum(row['hung'] for row in rows)}. Ledger rows "
        f"lost: {sum(row['ledger_rows_lost'] for row in rows)}, doubled: "
        f"{sum(row['ledger_rows_doubled'] for row in rows)}. Cells with a healthy tier: "
        f"{len(healthy)}, of which under {TARGET:.1%}: "
        f"{sum(row['answered_within_budget'] < TARGET for row in healthy)}.",
        "",
        "| overrun | calls | p50 ms | p99 ms | p99.9 ms |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {f['calls']} | {f['p50']} | {f['p99']} | {f['p99.9']} |"
            for name, f in data["overrun_ms"].items()
        ),
        "",
        "| component | fault | stage | requests | in budget | model | cache | partial | canned "
        "| draft, old | none | hung | rows lost | overrun p99.9 ms |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        mark = "" if row["tier_healthy"] else " (no way)"
        lines.append(
            f"| {row['component']} | {row['fault']}{mark} | {row['stage']} | {row['requests']} | "
            f"{row['answered_within_budget']:.1%} | {row['answered_by_model']} | "
            f"{row['from_fresh_cache']} | {row['partial']} | {row['canned']} | "
            f"{row['draft_or_stale']} | {row['not_answered']} | {row['hung']} | "
            f"{row['ledger_rows_lost']} | {row['overrun_p999_ms']} |"
        )
    lines += [
        "",
        "Held by processes, before and after:",
        "",
        "```",
        json.dumps(data["leaks"], indent=1),
        "```",
    ]
    lines += ["", "Not made:", "", *(f"- {a}, {b}: {why}." for a, b, why in impossible), ""]
    return "\n".join(lines)
