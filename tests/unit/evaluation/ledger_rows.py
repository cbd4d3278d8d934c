"""Ledger rows made by chance, as `tandem ledger export` writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

_COLUMNS: dict[str, Any] = {
    "row_id": pl.String, "at": pl.Datetime("us", "UTC"), "tenant": pl.String,
    "session_hash": pl.String, "task_type": pl.String, "intent": pl.String, "ended": pl.String,
    "level": pl.String, "target": pl.String, "attempts": pl.String, "complexity": pl.Float64,
    "confidence_raw": pl.Float64, "confidence": pl.Float64, "model_id": pl.String,
    "prompt_id": pl.String, "cost_micro_usd": pl.Int64, "input_tokens": pl.Int64,
    "input_tokens_trimmed": pl.Int64, "output_tokens": pl.Int64, "total_ms": pl.Float64,
    "cloud_ok": pl.Boolean, "shadow": pl.String, "verdict": pl.String,
}  # fmt: skip
LEVELS = {"EDGE": "L0", "CLOUD_SMALL": "L2", "CLOUD_LARGE": "L3"}


def row(number: int, target: str, attempts: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """One row; `attempts` need a target and take defaults for the rest."""
    filled: list[dict[str, Any]] = [
        {"reason": "COMPLEXITY_LOW", "outcome": "ACCEPTED", "ms": 100.0, "cost_micro_usd": 0,
         "model_id": "edge-1"} | one for one in attempts
    ]  # fmt: skip
    return {
        "row_id": f"r{number:06d}", "at": number * 1_000_000, "tenant": "t",
        "session_hash": f"s{number}", "task_type": "open_question", "intent": "", "ended": "OK",
        "level": LEVELS[target], "target": target, "attempts": json.dumps(filled),
        "complexity": 3.0, "model_id": filled[-1]["model_id"], "prompt_id": "p1",
        "cost_micro_usd": sum(int(one["cost_micro_usd"]) for one in filled),
        "input_tokens": 100, "output_tokens": 50,
        "total_ms": sum(one["ms"] for one in filled), **changes,
    }  # fmt: skip


def write_ledger(path: Path, rows: list[dict[str, Any]]) -> Path:
    """As Parquet."""
    pl.DataFrame(rows, schema=_COLUMNS).write_parquet(path)
    return path
