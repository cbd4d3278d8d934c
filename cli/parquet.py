"""Ledger rows as a Parquet file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Column, Double, Integer

from services.router.ledger.schema import REQUESTS


def write_parquet(file: Path, pages: Iterable[list[dict[str, Any]]]) -> int:
    """Writes all pages, one row group each; returns how many rows.

    Columns are the ledger's and `verdict`; `at` is a UTC timestamp in microseconds, what the
    ledger keeps as JSON is JSON text. An unfinished file never bears the name.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, _kind(pa, name)) for name in (*REQUESTS.c.keys(), "verdict")])
    partial, count = file.with_suffix(".partial"), 0
    file.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
        for rows in pages:
            table = pa.Table.from_pylist([_plain(row) for row in rows], schema=schema)
            writer.write_table(table)
            count += len(rows)
    partial.replace(file)
    return count


def _kind(pa: Any, name: str) -> Any:
    if name == "at":
        return pa.timestamp("us", tz="UTC")
    column: Column[Any] | None = REQUESTS.c.get(name)
    kind = column.type if column is not None else None
    if isinstance(kind, (Integer, BigInteger)):
        return pa.int64()
    if isinstance(kind, Double):
        return pa.float64()
    return pa.bool_() if isinstance(kind, Boolean) else pa.string()


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    found = {**row, "at": int(row["at"] * 1e6)}
    for column in REQUESTS.c:
        if isinstance(column.type, JSON) and row.get(column.name) is not None:
            found[column.name] = json.dumps(row[column.name], ensure_ascii=False)
    return found
