"""Counts by score: all that calibration and sweep need, small whatever the number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evaluation.calibration import Floats

# Far below the 0.02 between two thresholds, and bounds a table at 10,001 scores a task.
_DIGITS = 4
Strings = NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of equal score, intent and part; arrays of equal length, sorted by score.

    Attributes:
        parts: Which of the disjoint parts, from 0; a session is in one of them whole.
        rows: How many there are.
        right: Those where the edge was right.
        cloud_known: Those with a verdict on the cloud's answer.
        cloud_right: Those where it was right.
    """

    scores: Floats
    intents: Strings
    parts: NDArray[np.int64]
    rows: Floats
    right: Floats
    cloud_known: Floats
    cloud_right: Floats

    @property
    def total(self) -> int:
        """All rows."""
        return int(self.rows.sum())

    def where(self, mask: NDArray[np.bool_]) -> Counts:
        """Those entries."""
        return Counts(*(getattr(self, name)[mask] for name in self.__slots__))

    def part(self, *numbers: int) -> Counts:
        """The rows of some parts."""
        return self.where(np.isin(self.parts, numbers))


def count(frame: pl.LazyFrame, shares: tuple[float, ...], seed: int) -> dict[str, Counts]:
    """One pass over the rows, in bounded memory; by task.

    Args:
        frame: Of `SCHEMA`.
        shares: Of the sessions that go to each part; they add up to 1.
        seed: Of the split.
    """
    keys = ["task", "score", "intent", "part"]
    table = (
        frame.with_columns(pl.col("score").round(_DIGITS), _part(shares, seed).alias("part"))
        .group_by(keys)
        .agg(
            pl.len().alias("rows"),
            pl.col("right").sum().alias("right"),
            pl.col("cloud_right").is_not_null().sum().alias("cloud_known"),
            pl.col("cloud_right").sum().alias("cloud_right"),
        )
        .sort(keys)
        .collect(engine="streaming")
    )
    return {
        str(task): _counts(rows) for (task,), rows in table.group_by("task", maintain_order=True)
    }


def _part(shares: tuple[float, ...], seed: int) -> pl.Expr:
    """By a hash of the session, so that no session is in two parts."""
    place = pl.col("session").hash(seed) % 100_000
    bounds = np.cumsum(shares)[:-1] * 100_000
    past = [(place >= bound).cast(pl.Int64) for bound in bounds]
    return pl.sum_horizontal(pl.lit(0, pl.Int64), *past)


def _counts(table: pl.DataFrame) -> Counts:
    numbers = [table[name].cast(pl.Float64).to_numpy() for name in _NUMBERS]
    return Counts(
        table["score"].to_numpy(),
        np.array(table["intent"].to_list(), dtype=np.str_),
        table["part"].to_numpy(),
        *numbers,
    )


_NUMBERS = ("rows", "right", "cloud_known", "cloud_right")
