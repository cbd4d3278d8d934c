"""Reads judged rows, JSON lines or Parquet, into one lazy table.

Columns: `task`, `score` (0 to 1) or `signals` (an object, JSON lines only), `right`, `model_id`,
`prompt_id`; optional `intent`, `cloud_right`, `session`, `id`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from evaluation.judged.parquet import scan_judged
from evaluation.judged.schema import SCHEMA, Ids
from evaluation.rows import BadData, Row, read_rows
from services.common.confidence.signals import Signal, combine
from services.common.confidence.thresholds import Thresholds

DEFAULT_SIGNALS = frozenset({Signal.LOGPROB})


@dataclass(frozen=True, slots=True)
class Judged:
    """Rows that passed every check.

    Attributes:
        frame: Lazy, of `SCHEMA`; Parquet is scanned anew by each query, never held whole.
        ids: The one model and prompt of each task.
        warnings: What a reader should know of them.
    """

    frame: pl.LazyFrame
    ids: Mapping[str, Ids]
    warnings: tuple[str, ...] = ()

    def only(self, task: str) -> Judged:
        """The rows of one task.

        Raises:
            BadData: There are none; names the tasks that there are.
        """
        if task not in self.ids:
            raise BadData(f"no rows of task {task!r}; there are: {', '.join(sorted(self.ids))}")
        frame = self.frame.filter(pl.col("task") == task)
        return replace(self, frame=frame, ids={task: self.ids[task]})


def read_judged(
    path: Path,
    weights: Mapping[Signal, float] | None = None,
    signals: frozenset[Signal] = DEFAULT_SIGNALS,
    model_id: str = "",
) -> Judged:
    """All rows of a file.

    Args:
        path: JSON lines, gzipped or not, or a name that ends in .parquet.
        weights: Of the signals where rows have `signals`; None: the shipped ones.
        signals: What a plain `score` was made of.
        model_id: Only rows of this model; empty: all, and then a task may have but one.

    Raises:
        BadData: Not readable, a column missing or wrong, a row twice, or a task with answers
            of several models, prompts or sets of signals; names file and line.
    """
    if path.suffix == ".parquet":
        frame, ids, warnings = scan_judged(path, _named(signals), model_id)
        return Judged(frame, ids, warnings)
    rows = _Collector(path, weights or Thresholds().weights, signals, model_id)
    for row in read_rows(path):
        rows.add(row)
    return rows.done()


def _named(signals: frozenset[Signal]) -> str:
    return "+".join(sorted(signals))


class _Collector:
    """Takes rows one after the other and remembers where each thing was first seen."""

    def __init__(
        self,
        path: Path,
        weights: Mapping[Signal, float],
        signals: frozenset[Signal],
        model_id: str,
    ) -> None:
        self._path, self._weights, self._model_id = path, weights, model_id
        self._signals = signals
        self._rows: list[tuple[Any, ...]] = []
        self._seen: dict[str, str] = {}
        self._ids: dict[str, tuple[Ids, str]] = {}

    def add(self, row: Row) -> None:
        """Checks one row and keeps it."""
        model = row.get("model_id", str)
        if self._model_id and model != self._model_id:
            return
        self._once(row)
        score, made_of = self._score(row)
        task, found = row.get("task", str), Ids(model, row.get("prompt_id", str), made_of)
        first, where = self._ids.setdefault(task, (found, row.where))
        if first != found:
            raise BadData(
                f"{row.where}: task {task!r} has {found.described(first)}, but {where} has "
                f"{first.described(found)}; a calibration holds for one: choose with --model-id "
                "or split the file"
            )
        cloud = row.values.get("cloud_right")
        session = row.values.get("session")
        self._rows.append(
            (
                task,
                _text(row, "intent"),
                score,
                row.truth("right"),
                None if cloud is None else row.truth("cloud_right"),
                f"#{len(self._rows)}" if session in (None, "") else str(session),
            )
        )

    def done(self) -> Judged:
        """The table."""
        if not self._rows:
            raise BadData(f"{self._path}: no rows of model id {self._model_id!r}")
        frame = pl.DataFrame(self._rows, schema=dict(SCHEMA), orient="row")
        twice = len(frame) - frame.n_unique()
        warnings = (
            (f"{twice} rows are equal to others in every column; without `id` they are kept",)
            if twice and not self._seen
            else ()
        )
        return Judged(frame.lazy(), {task: ids for task, (ids, _) in self._ids.items()}, warnings)

    def _once(self, row: Row) -> None:
        if "id" not in row.values:
            return
        key = str(row.values["id"])
        if key in self._seen:
            raise BadData(f"{row.where}: the `id` of this row was there before, {self._seen[key]}")
        self._seen[key] = row.where

    def _score(self, row: Row) -> tuple[float, str]:
        if "signals" in row.values:
            return self._combined(row)
        score = row.number("score")
        if not 0.0 <= score <= 1.0:  # false for NaN too
            raise BadData(f"{row.where}: `score` must be from 0 to 1")
        return score, _named(self._signals)

    def _combined(self, row: Row) -> tuple[float, str]:
        given, known = row.get("signals", dict), {str(one) for one in Signal}
        for name, value in given.items():
            good = isinstance(value, int | float) and not isinstance(value, bool)
            if name not in known or not good or not (math.isfinite(value) and 0 <= value <= 1):
                raise BadData(
                    f"{row.where}: `signals` must map {', '.join(sorted(known))} to 0 to 1"
                )
        raw = combine({Signal(name): float(v) for name, v in given.items()}, self._weights)
        if raw is None:
            raise BadData(f"{row.where}: `signals` holds none that has a weight")
        return raw.value, _named(raw.signals)


def _text(row: Row, column: str) -> str:
    return row.get(column, str) if row.values.get(column) is not None else ""
