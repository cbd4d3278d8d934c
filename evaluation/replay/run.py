"""What another policy would have cost and got wrong on recorded traffic."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl
import polars.selectors as cs

from evaluation.intervals import wilson
from evaluation.replay.ledger import CLOUDS, scan_ledger
from evaluation.replay.rule import ReplayPolicy, kept, next_tier, route
from evaluation.replay.tables import task_means
from evaluation.rows import BadData

_TOKENS = cs.ends_with("_tokens", "_trim", "_cost_micro_usd")
_Z95: Final = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval; clustered by session where it is a mean.

    Where edge answers had to be guessed, the interval of a mean also holds what it would be if
    all of them were kept, and if none were: the ledger cannot tell more.

    Attributes:
        rows: That it stands on.
    """

    value: float
    low: float
    high: float
    rows: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one policy on the recorded rows.

    Attributes:
        cost: Micro USD a request.
        accuracy: Weighted to all rows by task and side; None without any verdict.
        escalation: Share of requests answered by the cloud.
        wrong_fallback: Of the escalated edge answers that have a verdict, those that were right.
        missed_fallback: Of the kept edge answers that have a verdict, those that were wrong.
        levels: Share of each target.
    """

    cost: Estimate
    accuracy: Estimate | None
    escalation: Estimate
    wrong_fallback: Estimate | None
    missed_fallback: Estimate | None
    cloud_calls_per_session: float
    levels: Mapping[str, float]
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Replay:
    """The comparison.

    Attributes:
        decided_anew: Share of rows whose first target the score gives; the others stay.
        imputed: Share of rows whose edge answer was never judged: its task's mean stands in.
        covered: Share of rows in groups (task and side) that have verdicts.
        moved: Rows by recorded and new target, where they differ.
    """

    rows: int
    sessions: int
    decided_anew: float
    imputed: float
    covered: float
    recorded: Figures
    replayed: Figures
    moved: tuple[tuple[str, str, int], ...]


def replay(path: Path, policy: ReplayPolicy, rows_to: Path | None = None) -> Replay:
    """Replays the rows of a Parquet file, scanned in batches.

    Args:
        path: Of `tandem ledger export`.
        policy: The one to try.
        rows_to: Where each row that differs is written, as Parquet.

    Raises:
        BadData: Not readable, a column missing, or no rows.
    """
    facts = scan_ledger(path).filter(pl.col("target").is_in(["EDGE", *CLOUDS]))
    try:
        # Read and put in order once; each figure is then a pass over narrow columns.
        with tempfile.TemporaryDirectory(prefix="tandem-replay-") as folder:
            narrow = Path(folder) / "facts.parquet"
            facts.drop("at", "day", "level", _TOKENS).sink_parquet(narrow)
            table = _replayed(pl.scan_parquet(narrow), policy)
            if rows_to is not None:
                _write_moved(table, rows_to)
            return _summary(path, table)
    except pl.exceptions.PolarsError as error:
        raise BadData(f"{path}: a column does not hold what it should: {error}") from None


def _replayed(facts: pl.LazyFrame, policy: ReplayPolicy) -> pl.LazyFrame:
    """Per row, as recorded (`was_…`) and under the policy (`new_…`).

    `…_edge` is the probability that the edge's answer is served: 0 or 1 where it is known.
    """
    means = task_means(facts, policy).frame.lazy()
    frame = facts.with_columns(route(policy)).join(means, on="task", how="left")
    frame = frame.with_columns(
        first=pl.when("free").then("first").otherwise(_recorded_first()),
        own_kept=kept(policy),
        tier=next_tier(policy),
    )
    edge_first = pl.col("first") == "EDGE"
    stays = pl.when("judged").then(pl.col("own_kept").fill_null(pl.col("mean_kept"))).otherwise(1.0)
    # What no rule decides anew and the edge was not judged on: as it went.
    went = pl.col("edge_kept").cast(pl.Float64)
    unjudged = ~pl.col("free") & pl.col("own_kept").is_null() & pl.col("edge_ran")
    new_edge = pl.when(edge_first & unjudged).then(went).when(edge_first).then(stays).otherwise(0.0)
    frame = frame.with_columns(new_edge=new_edge, was_edge=went).with_columns(
        new_cloud=pl.when(edge_first).then("tier").otherwise("first"),
        imputed=edge_first & pl.col("judged") & pl.col("own_kept").is_null() & pl.col("free"),
    )
    frame = frame.with_columns(_costs()).with_columns(_outcomes())
    return frame.with_columns(_bounds())


def _recorded_first() -> pl.Expr:
    return pl.when("edge_ran").then(pl.lit("EDGE")).otherwise(pl.col("target"))


def _tiered(prefix: str, *, small: bool) -> pl.Expr:
    """What the row itself says of a tier, else its task's mean."""
    name = CLOUDS[0] if small else CLOUDS[1]
    return pl.coalesce(pl.col(f"{prefix}_{name}"), pl.col(f"mean_{prefix}_{name}"), pl.lit(0.0))


def _costs() -> list[pl.Expr]:
    def tiered(prefix: str) -> pl.Expr:
        small, large = (_tiered(prefix, small=one) for one in (True, False))
        return pl.when(pl.col("new_cloud") == "CLOUD_LARGE").then(large).otherwise(small)

    to_cloud = 1.0 - pl.col("new_edge")
    same = (pl.col("new_edge") == pl.col("was_edge")) & (
        (pl.col("was_edge") == 1.0) | (pl.col("new_cloud") == pl.col("target"))
    )
    edge_ms = pl.coalesce("edge_ms", "mean_edge_ms", pl.lit(0.0))
    ran_edge = (pl.col("first") == "EDGE").cast(pl.Float64)
    return [
        pl.when(same).then("cost").otherwise(to_cloud * tiered("cost")).alias("new_cost"),
        pl.when(same)
        .then("total_ms")
        .otherwise(ran_edge * edge_ms + to_cloud * tiered("ms"))
        .alias("new_ms"),
        pl.when(pl.col("new_edge") >= 0.5)
        .then(pl.lit("EDGE"))
        .otherwise("new_cloud")
        .alias("new_target"),
    ]


def _bounds() -> list[pl.Expr]:
    """What guessed rows move a mean by, if all of them are kept (`less`) or none (`more`)."""
    kept, guessed = pl.col("new_edge"), pl.col("imputed")
    most = pl.max_horizontal(_tiered("cost", small=True), _tiered("cost", small=False))
    found = {
        "new_cost": (pl.col("new_cost"), most - pl.col("new_cost")),
        "new_cloud": (1.0 - kept, kept),
    }
    return [
        pl.when(guessed).then(value).otherwise(0.0).alias(f"{name}_{side}")
        for name, values in found.items()
        for side, value in zip(("less", "more"), values, strict=True)
    ]


def _outcomes() -> list[pl.Expr]:
    """`…_right` where the answer that is served has a verdict; null else."""
    edge, cloud = pl.col("edge_right"), pl.col("cloud_right")
    new = pl.when(pl.col("new_edge") == 1.0).then(edge).when(pl.col("new_edge") == 0.0).then(cloud)
    was = pl.when(pl.col("was_edge") == 1.0).then(edge).otherwise(cloud)
    return [new.otherwise(None).alias("new_right"), was.alias("was_right")]


def _write_moved(table: pl.LazyFrame, path: Path) -> None:
    partial = path.with_suffix(".partial")
    columns = ["row_id", "task", "intent", "score", "raw", "target", "new_target", "cost",
               "new_cost", "edge_right", "cloud_right"]  # fmt: skip
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        moved = table.filter(pl.col("target") != pl.col("new_target")).select(columns)
        moved.sink_parquet(partial)
        partial.replace(path)
    except OSError as error:
        raise BadData(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def _summary(path: Path, table: pl.LazyFrame) -> Replay:
    """Each figure from one of four passes over the rows; nothing is held but their sums."""
    table = table.select(
        "session", "task", "target", "new_target", "cost", "new_cost", "total_ms", "new_ms",
        "was_edge", "new_edge", "was_right", "new_right", "edge_right", "edge_ran", "first",
        "free", "imputed", *_MOVED_BY,
    )  # fmt: skip
    by_session = (
        table.group_by("session")
        .agg(
            pl.len().alias("n"),
            pl.col("cost", "new_cost").sum(),
            (1.0 - pl.col("was_edge")).sum().alias("was_cloud"),
            (1.0 - pl.col("new_edge")).sum().alias("new_cloud"),
        )
        .select(pl.len().alias("sessions"), pl.col("n").sum(), *_moments())
    )
    whole = table.select(
        pl.col("free").mean(),
        pl.col("imputed").mean(),
        pl.col(*_MOVED_BY).mean(),
        pl.col("total_ms").quantile(0.95).alias("was_p95"),
        pl.col("new_ms").quantile(0.95).alias("new_p95"),
        *_fallbacks("was"),
        *_fallbacks("new"),
    )
    groups = [
        table.group_by("task", pl.col(f"{name}_edge").round(0).alias("side")).agg(
            pl.len().alias("n"),
            pl.col(f"{name}_right").is_not_null().sum().alias("known"),
            pl.col(f"{name}_right").sum().alias("right"),
        )
        for name in ("was", "new")
    ]
    moved = table.group_by("target", "new_target").agg(pl.len().alias("n"))
    sums, figures, was, new, moves = pl.collect_all(
        [by_session, whole, *groups, moved], engine="streaming"
    )
    line, all_sums = figures.row(0, named=True), sums.row(0, named=True)
    if not all_sums["n"]:
        raise BadData(f"{path}: no rows that a model answered")
    was_accuracy, _ = _accuracy(was)
    new_accuracy, covered = _accuracy(new)
    return Replay(
        rows=all_sums["n"],
        sessions=all_sums["sessions"],
        decided_anew=line["free"],
        imputed=line["imputed"],
        covered=covered,
        recorded=_figures("was", "cost", line, all_sums, was_accuracy, _levels(moves, "target")),
        replayed=_figures(
            "new", "new_cost", line, all_sums, new_accuracy, _levels(moves, "new_target")
        ),
        moved=tuple(
            (old, to, count)
            for old, to, count in moves.sort("n", descending=True).iter_rows()
            if old != to
        ),
    )


_MOVED_BY = ("new_cost_less", "new_cost_more", "new_cloud_less", "new_cloud_more")
_SUMMED = ("cost", "new_cost", "was_cloud", "new_cloud")


def _moments() -> list[pl.Expr]:
    squares = [(pl.col("n") ** 2).sum().alias("nn")]
    for name in _SUMMED:
        value = pl.col(name)
        squares += [
            value.sum().alias(name),
            (value**2).sum().alias(f"{name}_2"),
            (value * pl.col("n")).sum().alias(f"{name}_n"),
        ]
    return squares


def _fallbacks(name: str) -> list[pl.Expr]:
    tried = pl.col("edge_ran") if name == "was" else pl.col("first") == "EDGE"
    escalated = tried & (pl.col(f"{name}_edge") == 0.0) & pl.col("edge_right").is_not_null()
    held = (pl.col(f"{name}_edge") == 1.0) & pl.col("edge_right").is_not_null()
    right = pl.col("edge_right").fill_null(False)
    return [
        escalated.sum().alias(f"{name}_escalated"),
        (escalated & right).sum().alias(f"{name}_wrong"),
        held.sum().alias(f"{name}_held"),
        (held & ~right).sum().alias(f"{name}_missed"),
    ]


def _figures(
    name: str,
    cost: str,
    line: Mapping[str, float],
    sums: Mapping[str, float],
    accuracy: Estimate | None,
    levels: Mapping[str, float],
) -> Figures:
    cloud = f"{name}_cloud"
    return Figures(
        cost=_mean(cost, sums, line),
        accuracy=accuracy,
        escalation=_mean(cloud, sums, line),
        wrong_fallback=_share(line[f"{name}_wrong"], line[f"{name}_escalated"]),
        missed_fallback=_share(line[f"{name}_missed"], line[f"{name}_held"]),
        cloud_calls_per_session=sums[cloud] / sums["sessions"],
        levels=levels,
        p95_ms=line[f"{name}_p95"],
    )


def _mean(name: str, sums: Mapping[str, float], line: Mapping[str, float]) -> Estimate:
    """Mean per row; the error of a ratio of sums over sessions (Cochran 1977, section 6)."""
    rows, sessions = sums["n"], sums["sessions"]
    mean = sums[name] / rows
    spread = sums[f"{name}_2"] - 2 * mean * sums[f"{name}_n"] + mean**2 * sums["nn"]
    scale = sessions / (sessions - 1) if sessions > 1 else 1.0
    error = _Z95 * math.sqrt(max(0.0, spread * scale)) / rows
    less, more = line.get(f"{name}_less", 0.0), line.get(f"{name}_more", 0.0)
    return Estimate(mean, mean - less - error, mean + more + error, int(rows))


def _share(hits: float, total: float) -> Estimate | None:
    interval = wilson(int(hits), int(total))
    return None if interval is None else Estimate(hits / total, *interval, int(total))


def _accuracy(groups: pl.DataFrame) -> tuple[Estimate | None, float]:
    """Each group weighs as many rows as it has, whatever number of them has a verdict."""
    rows = float(groups["n"].sum())
    known = groups.filter(pl.col("known") > 0)
    if known.is_empty():
        return None, 0.0
    covered = float(known["n"].sum())
    mean = spread = 0.0
    for n, verdicts, right in known.select("n", "known", "right").iter_rows():
        weight = n / covered
        # One more of each, so that a group without errors is not taken for certain.
        careful = (right + 1) / (verdicts + 2)
        mean += weight * right / verdicts
        spread += weight**2 * careful * (1 - careful) / verdicts
    error = _Z95 * math.sqrt(spread)
    low, high = max(0.0, mean - error), min(1.0, mean + error)
    return Estimate(mean, low, high, int(known["known"].sum())), covered / rows


def _levels(moves: pl.DataFrame, column: str) -> dict[str, float]:
    total = moves["n"].sum()
    table = moves.group_by(column).agg(pl.col("n").sum()).sort(column)
    return {name: count / total for name, count in table.iter_rows()}
