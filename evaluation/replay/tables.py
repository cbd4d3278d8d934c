"""Means of each task: what stands in where a row does not say what the other way would give."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from evaluation.replay.ledger import CLOUDS
from evaluation.replay.rule import ReplayPolicy, kept


@dataclass(frozen=True, slots=True)
class Means:
    """One line for each task.

    Attributes:
        frame: `mean_kept` (share of judged edge answers that the policy keeps), `mean_edge_ms`,
            and for each cloud tier `mean_cost_…` and `mean_ms_…`; where a task has none, those
            of all tasks, and where no task has any, of the other tier.
    """

    frame: pl.DataFrame


def task_means(facts: pl.LazyFrame, policy: ReplayPolicy) -> Means:
    """One pass over the rows."""
    named = {"mean_kept": kept(policy), "mean_edge_ms": pl.col("edge_ms")}
    for tier in CLOUDS:
        named |= {f"mean_{kind}_{tier}": pl.col(f"{kind}_{tier}") for kind in ("cost", "ms")}
    every = [value.mean().alias(name) for name, value in named.items()]
    rows = [value.is_not_null().sum().alias(f"{name}_n") for name, value in named.items()]
    table = facts.group_by("task").agg(*every, *rows).collect(engine="streaming")
    filled = [pl.coalesce(name, _overall(table, name), *_other(table, name)) for name in named]
    return Means(table.select("task", *filled).with_columns(pl.col("mean_kept").fill_null(0.0)))


def _overall(table: pl.DataFrame, name: str) -> pl.Expr:
    seen = table.filter(pl.col(name).is_not_null())
    total = float(seen[f"{name}_n"].sum())
    weighed = float((seen[name] * seen[f"{name}_n"]).sum())
    return pl.lit(weighed / total if total else None, pl.Float64)


def _other(table: pl.DataFrame, name: str) -> list[pl.Expr]:
    for tier, other in (CLOUDS, CLOUDS[::-1]):
        if name.endswith(tier):
            return [_overall(table, name.removesuffix(tier) + other)]
    return []
