"""Composition root of the edge worker: where the parts are put together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import grpc
import structlog

from services.common.deadline import BudgetLimits
from services.common.embedding.runner import Embedder
from services.common.errors import ConfigInvalid
from services.common.rpc.call import Principal
from services.common.rpc.readiness import Readiness
from services.common.weights.errors import ModelError
from services.edge_worker.classify import ClassifyPipeline
from services.edge_worker.config import EdgeSettings, EmbedSettings, LaneSettings, RuntimeSettings
from services.edge_worker.embed.batcher import EmbedBatcher
from services.edge_worker.engine import Engine, Hooks
from services.edge_worker.gauges import watch_lanes
from services.edge_worker.model import LoadedModel
from services.edge_worker.pipeline import GeneratePipeline
from services.edge_worker.record import Recorder
from services.edge_worker.runtime.base import ModelInfo
from services.edge_worker.scheduler.lane import LaneLimits
from services.edge_worker.scheduler.plan import LaneName
from services.edge_worker.server import EdgeServicer
from tandem.edge.v1 import edge_pb2, edge_pb2_grpc

_log = structlog.get_logger()
LoadModel = Callable[[RuntimeSettings], LoadedModel]


class TrustZone:
    """Admission of the edge: it listens inside the trust zone and asks for no credential.

    Tenants come with each request, in its body.
    """

    def __init__(self, limits: BudgetLimits) -> None:
        self._limits = limits

    def authenticate(self, method: str, metadata: Mapping[str, str]) -> Principal:
        """Anyone who can reach the port."""
        return Principal(name="trust-zone", tenant="")

    def limits(self, principal: Principal) -> BudgetLimits:
        """The same for all."""
        return self._limits


class EdgeApp:
    """Implements `services.common.rpc.process.App`.

    Args:
        settings: All of them.
        load_model: Opens the model; blocks, so it runs on a thread.
    """

    name = "edge"

    def __init__(self, settings: EdgeSettings, load_model: LoadModel) -> None:
        limits = settings.limits
        self.service_names: Sequence[str] = [
            edge_pb2.DESCRIPTOR.services_by_name["EdgeWorkerService"].full_name
        ]
        self.admission = TrustZone(BudgetLimits(limits.default_budget_ms, limits.max_budget_ms))
        self._settings = settings
        self._load_model = load_model
        self._servicer = EdgeServicer(settings)
        self._model: LoadedModel | None = None
        self._engine: Engine | None = None
        self._generate: GeneratePipeline | None = None
        self._embedder: EmbedBatcher | None = None

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the servicer, which refuses calls until `start` is through."""
        edge_pb2_grpc.add_EdgeWorkerServiceServicer_to_server(self._servicer, server)

    async def start(self, readiness: Readiness) -> None:
        """Loads and warms the model.

        Raises:
            ConfigInvalid: The model cannot be used as configured.
        """
        model = await asyncio.to_thread(self._load_model, self._settings.runtime)
        self._model = model
        info = model.runtime.info
        lanes = lane_limits(self._settings, info)
        recorder = Recorder(info)
        engine = Engine(
            model.runtime,
            list(lanes.values()),
            Hooks(on_step=recorder.step, on_health=partial(_on_health, readiness)),
            self._settings.runtime.failure_limit,
        )
        self._engine = engine
        await engine.start()
        watch_lanes(engine, info.kv_bytes_per_token)
        self._generate = generate = GeneratePipeline(
            model, engine, lanes, self._settings.limits, self._settings.stream, recorder
        )
        classify = ClassifyPipeline(model, engine, lanes, self._settings.limits, recorder)
        self._embedder = await _open_embedder(self._settings.embed)
        self._servicer.open(generate, classify, self._embedder, engine, info, readiness.draining)
        _log.info("model_ready", model=info.name, model_id=info.model_id, provider=info.provider)

    async def stop(self) -> None:
        """Ends the engine and frees the weights."""
        if self._engine is not None:
            await self._engine.stop()
        if self._generate is not None:
            self._generate.close()
        if self._embedder is not None:
            await self._embedder.stop()
        if self._model is not None:
            self._model.runtime.close()


async def _open_embedder(settings: EmbedSettings) -> EmbedBatcher | None:
    """None where no folder is set; ConfigInvalid where it cannot be used."""
    if settings.model_dir is None:
        return None
    try:
        embedder = await asyncio.to_thread(Embedder.load, settings.model_dir)
    except ModelError as exc:
        raise ConfigInvalid(f"embed.model_dir: {exc}") from exc
    batcher = EmbedBatcher(embedder.embed, embedder.model_id, settings)
    batcher.start()
    return batcher


def lane_limits(settings: EdgeSettings, info: ModelInfo) -> dict[LaneName, LaneLimits]:
    """Lanes in tokens of this model; `simple` first, which wins ties.

    Raises:
        ConfigInvalid: A row is longer than the model's context, or the cache is too small.
    """
    pairs = (
        (LaneName.SIMPLE, settings.lanes.simple),
        (LaneName.COMPLEX, settings.lanes.complex),
    )
    return {name: _lane_limits(name, lane, info) for name, lane in pairs}


def _lane_limits(name: LaneName, lane: LaneSettings, info: ModelInfo) -> LaneLimits:
    if lane.row_tokens > info.context_tokens:
        raise ConfigInvalid(
            f"lanes.{name}.row_tokens: must be at most the model's {info.context_tokens}"
        )
    pool_tokens = min(lane.max_cache_bytes // info.kv_bytes_per_token, lane.slots * lane.row_tokens)
    if pool_tokens < lane.row_tokens:
        raise ConfigInvalid(
            f"lanes.{name}.max_cache_bytes: must hold one row, "
            f"{lane.row_tokens * info.kv_bytes_per_token} bytes"
        )
    return LaneLimits(
        name=name,
        slots=lane.slots,
        max_batch_size=lane.max_batch_size,
        row_tokens=lane.row_tokens,
        pool_tokens=pool_tokens,
        max_queue=lane.max_queue,
        max_wait_ms=lane.max_wait_ms,
        prefill_chunk_tokens=lane.prefill_chunk_tokens,
        prefill_chunk_ms=lane.prefill_chunk_ms,
        share=lane.share,
    )


def _on_health(readiness: Readiness, healthy: bool) -> None:
    _log.error("engine_health", healthy=healthy)
    readiness.change(healthy)
