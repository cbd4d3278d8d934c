"""The router's rule over many rows at once. A property test holds it equal to `decide()`.

What it covers: complexity bounds with hysteresis, the routing and grey modes, bands and
calibrations. It takes as recorded what the ledger cannot tell: hard constraints and rules, the
cache, breakers, latency (two answers are taken to fit one after the other), the score itself,
and the target of the session's turn before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from services.common.confidence.signals import Signal
from services.common.confidence.thresholds import Bands, Calibration, Thresholds

EDGE, SMALL, LARGE = "EDGE", "CLOUD_SMALL", "CLOUD_LARGE"


@dataclass(frozen=True, slots=True)
class ReplayPolicy:
    """What a replay needs of a policy; names and meanings are those of the policy file."""

    low: float
    high: float
    hysteresis: float
    large_from: float
    routing: Literal["predictive", "cascade", "both"]
    grey_mode: Literal["shadow_cloud", "shadow_best", "cascade"]
    thresholds: Thresholds
    signals: frozenset[Signal] = frozenset({Signal.LOGPROB})


def route(policy: ReplayPolicy) -> list[pl.Expr]:
    """Columns `first` (target) and `judged` (by its confidence), from `score`, `last`, `task`."""
    side, sticky = _side(policy)
    score, last = pl.col("score"), pl.col("last")
    cloud = pl.when(score >= policy.large_from).then(pl.lit(LARGE)).otherwise(pl.lit(SMALL))
    high = pl.when(sticky & last.is_not_null()).then(last).otherwise(cloud)
    tasks = policy.thresholds.tasks
    by_task = pl.col("task").is_in([name for name, own in tasks.items() if own.judged])
    if policy.routing == "cascade":
        return [pl.lit(EDGE).alias("first"), pl.lit(True).alias("judged")]
    cascade = policy.routing == "both" and policy.grey_mode == "cascade"
    grey = pl.lit(EDGE) if cascade else _grey(policy)
    first = pl.when(side == "low").then(pl.lit(EDGE)).when(side == "high").then(high)
    in_grey = (side == "grey") & cascade
    return [first.otherwise(grey).alias("first"), (in_grey | by_task).alias("judged")]


def kept(policy: ReplayPolicy) -> pl.Expr:
    """1 where a judged edge answer of this `raw` score is served, 0 where it is escalated.

    Null where there is no score: the edge did not run, or was not judged.
    """
    fate = _calibrated(policy)
    accept = _by_bands(policy, lambda bands: bands.edges[2])
    return (fate >= accept).cast(pl.Float64)


def next_tier(policy: ReplayPolicy) -> pl.Expr:
    """Where an answer that is not kept goes: L2, or L3 where it is hopeless."""
    low = _by_bands(policy, lambda bands: bands.edges[0])
    hopeless = (_calibrated(policy) < low).fill_null(False)
    return pl.when(hopeless).then(pl.lit(LARGE)).otherwise(pl.lit(SMALL))


def _side(policy: ReplayPolicy) -> tuple[pl.Expr, pl.Expr]:
    score, last = pl.col("score"), pl.col("last")
    plain = (
        pl.when(score < policy.low)
        .then(pl.lit("low"))
        .when(score >= policy.high)
        .then(pl.lit("high"))
        .otherwise(pl.lit("grey"))
    )
    edge = (last == EDGE).fill_null(False)
    cloud = last.is_not_null() & ~edge
    stays_low = edge & (score < policy.low + policy.hysteresis)
    stays_high = cloud & (score >= policy.high - policy.hysteresis)
    side = pl.when(stays_low).then(pl.lit("low")).when(stays_high).then(pl.lit("high"))
    return side.otherwise(plain), stays_high & (plain != "high")


def _grey(policy: ReplayPolicy) -> pl.Expr:
    if policy.routing == "both":
        return pl.lit(SMALL)  # shadow_cloud, shadow_best
    middle = (policy.low + policy.high) / 2
    return pl.when(pl.col("score") < middle).then(pl.lit(EDGE)).otherwise(pl.lit(SMALL))


def _calibrated(policy: ReplayPolicy) -> pl.Expr:
    """Confidence; below every band where there are maps but none for this model and prompt."""
    raw, found = pl.col("raw"), pl.col("raw").clip(0.0, 1.0)
    mapped = {one.task for one in policy.thresholds.calibrations}
    refused = pl.col("task").is_in(sorted(mapped)) & raw.is_not_null()
    found = pl.when(refused).then(-1.0).otherwise(found)
    for one in policy.thresholds.calibrations:
        if one.signals == policy.signals:
            found = pl.when(_bound_to(one)).then(_map(raw, one)).otherwise(found)
    return found


def _bound_to(one: Calibration) -> pl.Expr:
    ids = (pl.col("model_id") == one.model_id) & (pl.col("prompt_id") == one.prompt_id)
    return (pl.col("task") == one.task) & ids


def _map(raw: pl.Expr, one: Calibration) -> pl.Expr:
    scores, values = np.array(one.scores), np.array(one.values)

    def apply(series: pl.Series) -> pl.Series:
        found = np.interp(series.fill_null(0.0).to_numpy(), scores, values)
        return pl.Series(found).set(series.is_null(), None)

    return raw.map_batches(apply, return_dtype=pl.Float64, is_elementwise=True)


def _by_bands(policy: ReplayPolicy, edge: Callable[[Bands], float]) -> pl.Expr:
    """A band's edge: the intent's, else the task's, else the default."""
    found: pl.Expr = pl.lit(edge(policy.thresholds.default))
    for task, own in policy.thresholds.tasks.items():
        mine = pl.col("task") == task
        if own.bands is not None:
            found = pl.when(mine).then(edge(own.bands)).otherwise(found)
        for intent, bands in own.intents.items():
            here = mine & (pl.col("intent") == intent)
            found = pl.when(here).then(edge(bands)).otherwise(found)
    return found
