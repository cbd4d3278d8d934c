"""Ledger and judged rows by the million, made in batches and written as Parquet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

_BATCH = 250_000
_TASKS = np.array(["open_question", "intent_classification", "short_summary", "extraction"])
_DAY_US = 86_400_000_000
# The first of June 2026.
_START_US = 1_780_272_000_000_000


def write_rows(ledger: Path, judged: Path, rows: int, seed: int = 0) -> None:
    """Traffic of thirty days under the shipped policy; sessions of four turns."""
    with _Writer(ledger) as one, _Writer(judged) as two:
        for start in range(0, rows, _BATCH):
            table = _batch(start, min(_BATCH, rows - start), rows, seed)
            one.write(_ledger(table))
            two.write(_judged(table))


class _Writer:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: pq.ParquetWriter | None = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, frame: pl.DataFrame) -> None:
        table = frame.to_arrow()
        if self._file is None:
            self._file = pq.ParquetWriter(self._path, table.schema, compression="zstd")
        self._file.write_table(table)


def _batch(start: int, count: int, rows: int, seed: int) -> pl.DataFrame:
    random = np.random.default_rng((seed, start))
    number = np.arange(start, start + count)
    score = np.round(1 + 9 * random.beta(2, 3, count), 2)
    raw = np.clip(1.1 - score / 10 + random.normal(0, 0.15, count), 0, 1)
    tokens_in, tokens_out = random.integers(30, 1500, count), random.integers(10, 300, count)
    return pl.DataFrame(
        {
            "n": number,
            "at": _START_US + (number * (30 * _DAY_US // rows)),
            "task": _TASKS[random.integers(0, len(_TASKS), count)],
            "score": score,
            "raw": np.round(raw, 4),
            "edge_right": random.random(count) < raw,
            "cloud_right": random.random(count) < 0.95,
            "known": random.random(count) < 0.05,
            "tokens_in": tokens_in,
            "tokens_out": tokens_out,
            "edge_ms": np.round(80 + tokens_out * 9.0, 1),
            "cloud_ms": np.round(random.lognormal(6.8, 0.5, count), 1),
        }
    )


def _ledger(rows: pl.DataFrame) -> pl.DataFrame:
    grey, high = pl.col("score").is_between(5, 7, closed="left"), pl.col("score") >= 7
    rejected = grey & (pl.col("raw") < 0.75)
    target = (
        pl.when(high & (pl.col("score") >= 8.5) | rejected & (pl.col("raw") < 0.55))
        .then(pl.lit("CLOUD_LARGE"))
        .when(high | rejected)
        .then(pl.lit("CLOUD_SMALL"))
        .otherwise(pl.lit("EDGE"))
    )
    rows = rows.with_columns(grey=grey, high=high, rejected=rejected, target=target)
    large = pl.when(pl.col("target") == "CLOUD_LARGE").then(4).otherwise(1)
    price = (pl.col("tokens_in") * 0.5 + pl.col("tokens_out") * 2.0) * large
    rows = rows.with_columns(price=price.cast(pl.Int64))
    right = pl.when(pl.col("target") == "EDGE").then("edge_right").otherwise("cloud_right")
    verdict = pl.when(right).then(pl.lit("GOOD")).otherwise(pl.lit("BAD"))
    edge_ms, cloud_ms = (pl.when(one).then(ms).otherwise(0.0) for one, ms in (
        (~pl.col("high"), "edge_ms"), (pl.col("target") != "EDGE", "cloud_ms")))  # fmt: skip
    return rows.select(
        pl.format("r{}", "n").alias("row_id"),
        pl.col("at").cast(pl.Datetime("us", "UTC")),
        pl.lit("tenant").alias("tenant"),
        pl.format("s{}", pl.col("n") // 4).alias("session_hash"),
        pl.col("task").alias("task_type"),
        pl.lit("").alias("intent"),
        pl.lit("ANSWERED").alias("ended"),
        pl.col("target").replace_strict(
            {"EDGE": "L0", "CLOUD_SMALL": "L2", "CLOUD_LARGE": "L3"}
        ).alias("level"),
        "target",
        _attempts().alias("attempts"),
        pl.col("score").alias("complexity"),
        pl.when("grey").then("raw").alias("confidence_raw"),
        pl.lit("edge-1").alias("model_id"),
        pl.lit("prompt-1").alias("prompt_id"),
        pl.when(pl.col("target") == "EDGE").then(0).otherwise("price").alias("cost_micro_usd"),
        (edge_ms + cloud_ms).alias("total_ms"),
        pl.lit(None, pl.Boolean).alias("cloud_ok"),
        pl.lit(None, pl.String).alias("shadow"),
        pl.when("known").then(verdict).alias("verdict"),
    )  # fmt: skip


def _attempts() -> pl.Expr:
    edge = pl.format(
        '{"index":0,"level":"L0","target":"EDGE","reason":"{}","outcome":"{}","ms":{},'
        '"model_id":"edge-1","input_tokens":{},"output_tokens":{},"cost_micro_usd":0}'.replace(
            '{"', "<\""
        ).replace("0}", "0>"),
        pl.when("grey").then(pl.lit("GREY_CASCADE")).otherwise(pl.lit("COMPLEXITY_LOW")),
        pl.when("rejected").then(pl.lit("REJECTED")).otherwise(pl.lit("ACCEPTED")),
        "edge_ms", "tokens_in", "tokens_out",
    )  # fmt: skip
    cloud = pl.format(
        '<"index":1,"level":"L2","target":"{}","reason":"COMPLEXITY_HIGH","outcome":"ACCEPTED",'
        '"ms":{},"model_id":"cloud","input_tokens":{},"output_tokens":{},"cost_micro_usd":{}>',
        "target", "cloud_ms", "tokens_in", "tokens_out", "price",
    )  # fmt: skip
    both = pl.concat_str(edge, pl.lit(","), cloud)
    made = pl.when("high").then(cloud).when("rejected").then(both).otherwise(edge)
    text = pl.concat_str(pl.lit("["), made, pl.lit("]"))
    return text.str.replace_all("<", "{", literal=True).str.replace_all(">", "}", literal=True)


def _judged(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(
        "task",
        pl.col("raw").alias("score"),
        pl.col("edge_right").alias("right"),
        "cloud_right",
        pl.format("s{}", pl.col("n") // 4).alias("session"),
        pl.lit("edge-1").alias("model_id"),
        pl.lit("prompt-1").alias("prompt_id"),
    )
