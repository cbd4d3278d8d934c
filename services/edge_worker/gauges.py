"""Gauges of the lanes, read from the engine whenever metrics are collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation

from services.common.telemetry import names
from services.edge_worker.engine import Engine
from services.edge_worker.scheduler.scheduler import LaneView


def watch_lanes(engine: Engine, bytes_per_token: int) -> None:
    """Makes the gauges; they are read on the exporters' threads, under the engine's lock.

    Args:
        bytes_per_token: Of the KV cache, for pools in bytes.
    """
    meter = metrics.get_meter("tandem.edge")

    def read(value: Callable[[LaneView], int]) -> Callable[[CallbackOptions], list[Observation]]:
        return lambda _: list(_observe(engine.view(), value))

    meter.create_observable_gauge(
        names.EDGE_QUEUE_DEPTH,
        [read(lambda lane: lane.queued)],
        unit="{request}",
        description="Requests that wait for a place",
    )
    meter.create_observable_gauge(
        names.EDGE_ROWS_ACTIVE,
        [read(lambda lane: lane.active)],
        unit="{row}",
        description="Rows that hold a place",
    )
    meter.create_observable_gauge(
        names.EDGE_KV_USED,
        [read(lambda lane: lane.kv_used_tokens * bytes_per_token)],
        unit="By",
        description="KV cache that is taken",
    )
    meter.create_observable_gauge(
        names.EDGE_KV_SIZE,
        [read(lambda lane: lane.kv_total_tokens * bytes_per_token)],
        unit="By",
        description="KV cache that there is",
    )


def _observe(lanes: Iterable[LaneView], value: Callable[[LaneView], int]) -> Iterable[Observation]:
    for lane in lanes:
        yield Observation(value(lane), {names.LANE: lane.name.value})
