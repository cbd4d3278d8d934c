"""The ledger by day and task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from evaluation.replay.ledger import CLOUDS, scan_ledger
from evaluation.rows import BadData


@dataclass(frozen=True, slots=True)
class Line:
    """Requests of one day or task.

    Attributes:
        cost_usd: Of all of them.
        escalation: Share that the cloud answered.
        good: Share of those with a verdict whose verdict is good; None without any.
    """

    name: str
    requests: int
    cost_usd: float
    escalation: float
    p50_ms: float
    p95_ms: float
    verdicts: int
    good: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """What the page shows of the ledger.

    Attributes:
        targets: Requests by day and target, for the picture.
    """

    total: Line
    days: tuple[Line, ...]
    tasks: tuple[Line, ...]
    targets: tuple[tuple[str, str, int], ...]


def summarize(path: Path) -> Summary:
    """Passes over the file in batches; nothing is held but the sums.

    Raises:
        BadData: Not readable, a column missing, or no rows.
    """
    facts = scan_ledger(path, sessions=False).select(
        "task", "target", "cost", "total_ms",
        pl.col("day").cast(pl.String),
        pl.coalesce(
            pl.when(pl.col("target") == "EDGE").then("edge_right"),
            pl.when(pl.col("target").is_in(CLOUDS)).then("cloud_right"),
        ).alias("right"),
    )  # fmt: skip
    lines = [
        facts.group_by(name).agg(*_figures()).sort("name")
        for name in (pl.lit("all").alias("name"), pl.col("day").alias("name"), _task())
    ]
    targets = facts.group_by("day", "target").len().sort("day", "target")
    try:
        total, days, tasks, by_target = pl.collect_all([*lines, targets], engine="streaming")
    except pl.exceptions.PolarsError as error:
        raise BadData(f"{path}: a column does not hold what it should: {error}") from None
    if days.is_empty():
        raise BadData(f"{path}: no rows")
    return Summary(
        total=_lines(total)[0],
        days=_lines(days),
        tasks=_lines(tasks),
        targets=tuple(by_target.iter_rows()),
    )


def _task() -> pl.Expr:
    task = pl.col("task")
    return pl.when(task == "").then(pl.lit("not known")).otherwise(task).alias("name")


def _figures() -> list[pl.Expr]:
    known = pl.col("right").is_not_null()
    return [
        pl.len().alias("requests"),
        (pl.col("cost").sum() / 1e6).alias("cost_usd"),
        pl.col("target").is_in(CLOUDS).mean().alias("escalation"),
        pl.col("total_ms").median().alias("p50_ms"),
        pl.col("total_ms").quantile(0.95).alias("p95_ms"),
        known.sum().alias("verdicts"),
        pl.col("right").mean().alias("good"),
    ]


def _lines(table: pl.DataFrame) -> tuple[Line, ...]:
    return tuple(Line(**one) for one in table.iter_rows(named=True))
