"""Ledger rows as facts for a replay: one lazy table, scanned in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl

from evaluation.judged.parquet import open_parquet

_NEEDED = (
    "row_id", "at", "tenant", "session_hash", "task_type", "intent", "ended", "level", "target",
    "attempts", "complexity", "confidence_raw", "model_id", "prompt_id", "cost_micro_usd",
    "total_ms", "verdict",
)  # fmt: skip
FREE: Final = (
    "COMPLEXITY_LOW",
    "COMPLEXITY_HIGH",
    "GREY_CASCADE",
    "GREY_SHADOW",
    "SESSION_STICKY",
)
"""Reasons of a first attempt that the complexity score gave: only these are decided anew."""
CLOUDS: Final = ("CLOUD_SMALL", "CLOUD_LARGE")
_ATTEMPT = pl.Struct(
    {
        "target": pl.String,
        "reason": pl.String,
        "outcome": pl.String,
        "ms": pl.Float64,
        "cost_micro_usd": pl.Float64,
        "model_id": pl.String,
        "input_tokens": pl.Float64,
        "output_tokens": pl.Float64,
        "payload_tokens": pl.List(pl.Float64),
    }
)
_SHADOW = pl.Struct({"edge_ok": pl.Boolean, "cloud_ok": pl.Boolean})


def scan_ledger(path: Path, *, sessions: bool = True) -> pl.LazyFrame:
    """What `tandem ledger export` has written, as facts.

    Columns: `row_id`, `session` (its own for a row without), `day`, `task`, `intent`, `level`,
    `target`, `last` (target of the session's turn before), `free`, `score`, `raw`, `model_id`
    (the edge's, where it ran), `prompt_id`, `edge_ran`, `edge_kept`, `edge_ms`, `cost`,
    `total_ms`, and for each cloud tier `cost_…` and `ms_…`; `edge_right` and `cloud_right`
    where something says so: the verdict on the answer that was served, and `shadow` or
    `cloud_ok` for the other side.

    Args:
        path: A Parquet file.
        sessions: Sort by session and add `last`; it is the dearest part.

    Raises:
        BadData: Not a whole Parquet file, or a column is missing.
    """
    raw, schema = open_parquet(path, _NEEDED)
    other = {name: pl.lit(None, pl.String) for name in ("shadow",) if name not in schema}
    other |= {"cloud_ok": pl.lit(None, pl.Boolean)} if "cloud_ok" not in schema else {}
    parsed = raw.with_columns(**other).with_columns(
        attempts=pl.col("attempts").str.json_decode(pl.List(_ATTEMPT)),
        shadow=pl.col("shadow").str.json_decode(_SHADOW),
    )
    facts = parsed.select(*_plain(), *_of_attempts(), *_verdicts())
    return _with_last(facts) if sessions else facts


def _plain() -> list[pl.Expr]:
    session, row = pl.col("session_hash").fill_null(""), pl.col("row_id")
    own = pl.concat_str(pl.lit("row "), row)
    return [
        row,
        pl.when(session == "").then(own).otherwise(session).alias("session"),
        pl.col("at").cast(pl.Datetime("us", "UTC")).alias("at"),
        pl.col("at").cast(pl.Datetime("us", "UTC")).dt.date().alias("day"),
        pl.col("task_type").fill_null("").alias("task"),
        pl.col("intent").fill_null(""),
        pl.col("level").fill_null(""),
        pl.col("target").fill_null(""),
        pl.col("complexity").alias("score"),
        pl.col("confidence_raw").alias("raw"),
        pl.col("prompt_id").fill_null(""),
        pl.col("cost_micro_usd").fill_null(0).cast(pl.Float64).alias("cost"),
        pl.col("total_ms").fill_null(0.0),
    ]


def _of_attempts() -> list[pl.Expr]:
    first = pl.col("attempts").list.first().struct.field
    edge = _attempt_at("EDGE")
    found = [
        (first("reason").is_in(FREE) & pl.col("complexity").is_not_null())
        .fill_null(False)
        .alias("free"),
        edge.struct.field("ms").is_not_null().alias("edge_ran"),
        (pl.col("target") == "EDGE").fill_null(False).alias("edge_kept"),
        edge.struct.field("ms").alias("edge_ms"),
        edge.struct.field("model_id").fill_null(pl.col("model_id")).fill_null("").alias("model_id"),
    ]
    for target in CLOUDS:
        tier = _attempt_at(target).struct.field
        found.append(tier("ms").alias(f"ms_{target}"))
        found.append(tier("cost_micro_usd").alias(f"cost_{target}"))
    return found + _tokens()


def _tokens() -> list[pl.Expr]:
    """Of all attempts on a cloud, and of the last one made on the edge.

    `cloud_trim` is what the payload kept of its tokens, 1 where it was not trimmed.
    """
    one = pl.element().struct.field
    clouds = pl.col("attempts").list.eval(pl.element().filter(one("target").is_in(CLOUDS)))
    edge = _attempt_at("EDGE").struct.field
    kept, before = (one("payload_tokens").list.get(i, null_on_oob=True) for i in (1, 0))
    return [
        *(
            clouds.list.eval(one(name)).list.sum().alias(f"cloud_{name}")
            for name in ("input_tokens", "output_tokens", "cost_micro_usd")
        ),
        *(edge(name).alias(f"edge_{name}") for name in ("input_tokens", "output_tokens")),
        clouds.list.eval(kept / before).list.last().fill_null(1.0).alias("cloud_trim"),
    ]


def _attempt_at(target: str) -> pl.Expr:
    """The last attempt on a target that was made."""
    mine = (pl.element().struct.field("target") == target) & (
        pl.element().struct.field("outcome") != "SKIPPED"
    )
    return pl.col("attempts").list.eval(pl.element().filter(mine)).list.last()


def _verdicts() -> list[pl.Expr]:
    good = pl.when(pl.col("verdict").is_not_null()).then(pl.col("verdict") == "GOOD")
    served_edge = good.otherwise(None)
    edge = pl.when(pl.col("target") == "EDGE").then(served_edge)
    cloud = pl.when(pl.col("target").is_in(CLOUDS)).then(served_edge)
    shadow = pl.col("shadow").struct.field
    return [
        edge.otherwise(shadow("edge_ok")).alias("edge_right"),
        cloud.otherwise(pl.coalesce(shadow("cloud_ok"), pl.col("cloud_ok"))).alias("cloud_right"),
    ]


def _with_last(frame: pl.LazyFrame) -> pl.LazyFrame:
    """With the model that answered the session's turn before, as recorded."""
    ordered = frame.sort("session", "at", "row_id")
    before = pl.col("target").shift(1)
    same = pl.col("session") == pl.col("session").shift(1)
    known = same & before.is_in(["EDGE", *CLOUDS])
    return ordered.with_columns(last=pl.when(known).then(before).otherwise(None))
