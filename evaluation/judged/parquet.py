"""Judged rows in Parquet: scanned in batches, checked by one query, never held whole."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from evaluation.judged.schema import SCHEMA, Ids
from evaluation.rows import BadData

_NEEDED = ("task", "score", "right", "model_id", "prompt_id")
_Found = tuple[pl.LazyFrame, dict[str, Ids], tuple[str, ...]]


def open_parquet(path: Path, needed: tuple[str, ...]) -> tuple[pl.LazyFrame, pl.Schema]:
    """A lazy scan and its columns.

    Raises:
        BadData: Not readable, cut, or without one of `needed`.
    """
    try:
        frame = pl.scan_parquet(path)
        schema = frame.collect_schema()
    except (OSError, pl.exceptions.PolarsError):
        raise BadData(f"{path}: not a whole Parquet file (is it cut?)") from None
    for column in needed:
        if column not in schema:
            raise BadData(f"{path}: the column `{column}` is missing")
    return frame, schema


def scan_judged(path: Path, signals: str, model_id: str) -> _Found:
    """The rows as a lazy table of `SCHEMA`, the ids of each task, and warnings.

    Raises:
        BadData: As `read_judged`; a row is named by its number, from 1.
    """
    raw, schema = open_parquet(path, _NEEDED)
    if not schema["score"].is_numeric():
        raise BadData(f"{path}: `score` must hold numbers")
    if schema["right"] != pl.Boolean:
        raise BadData(f"{path}: `right` must hold true and false")
    raw = raw.with_row_index("row", offset=1)
    if model_id:
        raw = raw.filter(pl.col("model_id") == model_id)
    try:
        _check_rows(path, raw, schema)
        ids = _ids(path, raw, signals)
    except pl.exceptions.PolarsError:
        raise BadData(f"{path}: the Parquet file is damaged") from None
    return raw.select(_columns(schema)), ids, ()


def _columns(schema: pl.Schema) -> list[pl.Expr]:
    absent = {"intent": pl.lit(""), "session": pl.lit(""), "cloud_right": pl.lit(None, pl.Boolean)}
    found = []
    for name, kind in SCHEMA.items():
        value = pl.col(name) if name in schema else absent[name]
        found.append(value.cast(kind).alias(name))
    own = pl.concat_str(pl.lit("#"), pl.col("row").cast(pl.String))
    return [
        pl.when(one.fill_null("") == "").then(own).otherwise(one).alias("session")
        if one.meta.output_name() == "session"
        else (one.fill_null("").alias("intent") if one.meta.output_name() == "intent" else one)
        for one in found
    ]


def _check_rows(path: Path, raw: pl.LazyFrame, schema: pl.Schema) -> None:
    """One pass: the first row that breaks each rule."""
    row = pl.col("row")
    inside = pl.col("score").is_between(0, 1) & pl.col("score").is_not_null()
    rules = {f"`{name}` is null": pl.col(name).is_null() for name in _NEEDED}
    rules["`score` must be from 0 to 1"] = ~inside.fill_null(False)
    checks = [row.filter(bad).min().alias(text) for text, bad in rules.items()]
    # A hash, so that ten million texts need not be held.
    different = [pl.col("id").hash().n_unique().alias("different")] if "id" in schema else []
    found = raw.select(pl.len().alias("rows"), *checks, *different).collect(engine="streaming")
    answer = found.row(0, named=True)
    if not answer["rows"]:
        raise BadData(f"{path}: no rows")
    for text in rules:
        if answer[text] is not None:
            raise BadData(f"{path}, row {answer[text]}: {text}")
    if answer.get("different", answer["rows"]) < answer["rows"]:
        raise BadData(f"{path}, {_twice(raw)}: the `id` of this row was there before")


def _twice(raw: pl.LazyFrame) -> str:
    again = raw.filter(~pl.col("id").is_first_distinct()).select(pl.col("row").min())
    return f"row {again.collect(engine='streaming').item()}"


def _ids(path: Path, raw: pl.LazyFrame, signals: str) -> dict[str, Ids]:
    keys = ["task", "model_id", "prompt_id"]
    table = raw.group_by(keys).agg(pl.col("row").min()).sort("row").collect(engine="streaming")
    found: dict[str, Ids] = {}
    for task, model, prompt, row in table.iter_rows():
        ids = Ids(model, prompt, signals)
        first = found.setdefault(task, ids)
        if first != ids:
            raise BadData(
                f"{path}, row {row}: task {task!r} has {ids.described(first)}, earlier rows have "
                f"{first.described(ids)}; a calibration holds for one: choose with --model-id or "
                "split the file"
            )
    return found
