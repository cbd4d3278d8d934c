"""Load of the worker as `WatchLoad` reports it."""

from __future__ import annotations

from typing import Final

from services.common.errors import InvalidField
from services.edge_worker.engine import Engine
from services.edge_worker.runtime.base import ModelInfo
from services.edge_worker.scheduler.plan import LaneName
from services.edge_worker.scheduler.scheduler import LaneView
from tandem.edge.v1 import edge_pb2

MIN_INTERVAL_MS: Final = 100
MAX_INTERVAL_MS: Final = 60_000
DEFAULT_INTERVAL_MS: Final = 1_000
WIRE_LANES: Final = {
    LaneName.SIMPLE: edge_pb2.LANE_SIMPLE,
    LaneName.COMPLEX: edge_pb2.LANE_COMPLEX,
}


def read_interval_s(request: edge_pb2.WatchLoadRequest) -> float:
    """Time between reports; InvalidField outside of 100 to 60,000 ms."""
    interval = request.interval_ms or DEFAULT_INTERVAL_MS
    if not MIN_INTERVAL_MS <= interval <= MAX_INTERVAL_MS:
        raise InvalidField(
            "interval_ms", f"must be 0 or from {MIN_INTERVAL_MS} to {MAX_INTERVAL_MS}"
        )
    return interval / 1000.0


def report_load(engine: Engine, info: ModelInfo) -> edge_pb2.WatchLoadResponse:
    """Load of each lane now."""
    return edge_pb2.WatchLoadResponse(
        model_id=info.model_id,
        provider=info.provider,
        context_tokens=info.context_tokens,
        lanes=[_lane(view, info.kv_bytes_per_token) for view in engine.view()],
    )


def _lane(view: LaneView, bytes_per_token: int) -> edge_pb2.LaneLoad:
    return edge_pb2.LaneLoad(
        lane=WIRE_LANES[view.name],
        queued=view.queued,
        active=view.active,
        slots=view.slots,
        max_queue=view.max_queue,
        kv_used_bytes=view.kv_used_tokens * bytes_per_token,
        kv_total_bytes=view.kv_total_tokens * bytes_per_token,
        ttft_ms=view.ttft_ms,
        tpot_ms=view.tpot_ms,
        steps=view.steps,
        rows=view.rows,
        shared_steps=view.shared_steps,
    )
