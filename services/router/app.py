"""The router's composition root."""

from __future__ import annotations

import contextlib
import time

import grpc

from services.common.identity import check_secret, read_secret
from services.common.pii.combined import open_detector
from services.common.rpc.outward import open_channel
from services.common.rpc.readiness import Readiness
from services.common.settings import TlsSettings
from services.common.vocabulary import Target
from services.router.aside.desk import AsideDesk
from services.router.aside.queue import AsideQueue
from services.router.aside.results import LateResults
from services.router.assess import Assessor
from services.router.cache.parts import open_cache
from services.router.config import RouterSettings
from services.router.execute.executor import Executor
from services.router.experiment import Policies
from services.router.gather import Gatherer
from services.router.ledger.feedback import FeedbackDesk
from services.router.ledger.parts import open_ledger
from services.router.ledger.store import StoreDown
from services.router.minds import open_minds
from services.router.pipeline import Pipeline
from services.router.policy_store import PolicyStore
from services.router.record import Recorder
from services.router.server import RouterServicer
from services.router.state.breakers import Breakers
from services.router.state.cloud_latency import CloudLatency
from services.router.state.edge_load import EdgeLoad
from services.router.state.lengths import OutputLengths
from services.router.state.load import Load
from services.router.targets.base import ModelTarget
from services.router.targets.cloud import CloudTarget
from services.router.targets.edge import EdgeTarget
from services.router.tenants import RouterAdmission, watch_tenants
from tandem.router.v1 import router_pb2, router_pb2_grpc

# Some two hundred for each task of a common mix.
_RECALLED_ROWS = 2_000
_LOOPBACK = ("127.", "localhost:", "[::1]:", "unix:")


class RouterApp:
    """Everything the router is made of; see `services.common.rpc.process.App`."""

    name = "router"
    service_names: tuple[str, ...] = (
        router_pb2.DESCRIPTOR.services_by_name["RouterService"].full_name,
    )

    def __init__(self, settings: RouterSettings) -> None:
        self._settings = settings
        loopback = settings.server.listen.startswith(_LOOPBACK)
        self.admission = RouterAdmission(watch_tenants(settings.tenants_file, loopback=loopback))
        self._policies = self._open_policies(settings)
        self._minds = open_minds(settings.embedder_dir, settings.complexity_dir)
        self._readiness: Readiness | None = None
        secret = read_secret(
            settings.cloud.secret_file, settings.cloud.secret_env, "cloud.secret_file"
        )
        self._secret = check_secret(secret, "cloud.secret_file")
        self._ledger = open_ledger(
            settings.ledger_url,
            settings.ledger_spool_dir,
            settings.ledger_spool_max_bytes,
            settings.ledger_retention_days,
            self._ledger_state,
        )
        self._cache = open_cache(settings.cache, self._minds.embedder)
        self._aside = AsideQueue()
        self._lengths = OutputLengths()
        self._channels: list[grpc.aio.Channel] = []
        self._edge_load: EdgeLoad | None = None

    def register(self, server: grpc.aio.Server) -> None:
        """Opens the channels, which connect when used, and adds the servicer."""
        settings = self._settings
        edge = self._open(settings.edge.address, settings.edge.tls)
        cloud = self._open(settings.cloud.address, settings.cloud.tls)
        self._edge_load = EdgeLoad(edge, settings.edge, time.monotonic)
        latency, breakers = CloudLatency(), Breakers(settings.breakers)
        edge_target = EdgeTarget(edge)
        models: dict[Target, ModelTarget] = {
            Target.EDGE: edge_target,
            Target.CLOUD_SMALL: CloudTarget(cloud, Target.CLOUD_SMALL, self._secret),
            Target.CLOUD_LARGE: CloudTarget(cloud, Target.CLOUD_LARGE, self._secret),
        }
        detector = open_detector(entities=settings.pii_entities)
        minds = self._minds
        gatherer = Gatherer(
            self._edge_load,
            latency,
            breakers,
            assessor=Assessor(minds.embedder, minds.complexity),
            load=Load(settings.load, time.monotonic),
            lengths=self._lengths,
        )
        executor = Executor(
            models,
            latency,
            breakers,
            time.monotonic,
            quality=gatherer.quality,
            lengths=self._lengths,
            doubter=edge_target,
        )
        recorder = Recorder(self._ledger.writer)
        results = LateResults(time.monotonic)
        pipeline = Pipeline(
            detector=detector,
            gatherer=gatherer,
            executor=executor,
            recorder=recorder,
            clock=time.monotonic,
            cache=self._cache,
            aside=AsideDesk(self._aside, results, executor, recorder, time.monotonic),
        )
        desk = FeedbackDesk(
            self._ledger.writer, detector, settings.limits.max_text_chars, self._cache
        )
        servicer = RouterServicer(
            pipeline, self.admission, self._policies, settings.limits, desk, results, minds
        )
        router_pb2_grpc.add_RouterServiceServicer_to_server(servicer, server)

    async def start(self, readiness: Readiness) -> None:
        """Follows the edge and opens the ledger. Needs neither edge nor cloud to be up."""
        self._readiness = readiness
        self._policy_state(True)
        self._ledger_state(True)
        self._policies.start()
        self._aside.start()
        await self._ledger.start()
        self._aside.offer(self._recall)
        await self.admission.start()
        if self._edge_load is not None:
            self._edge_load.start()

    async def stop(self) -> None:
        """After the last call: ends the followers, closes channels, empties the ledger's queue."""
        await self._policies.stop()
        await self._aside.stop()
        if self._edge_load is not None:
            await self._edge_load.stop()
        for channel in self._channels:
            await channel.close()
        if self._cache is not None:
            await self._cache.stop()
        await self._ledger.stop()
        await self.admission.stop()

    def _open_policies(self, settings: RouterSettings) -> Policies:
        poll_ms, own, other = settings.policy_poll_ms, settings.policy_file, settings.candidate
        in_force = PolicyStore(own, poll_ms, self._policy_state, settings.thresholds_file)
        if other.policy_file is None:
            return Policies(in_force)
        candidate = PolicyStore(
            other.policy_file, poll_ms, self._candidate_state, other.thresholds_file
        )
        return Policies(in_force, candidate, other.ab_share)

    async def _recall(self) -> None:
        """How long answers were before this process began; without a store it learns anew."""
        with contextlib.suppress(StoreDown):
            self._lengths.seed(await self._ledger.newest(_RECALLED_ROWS))

    def _candidate_state(self, well: bool) -> None:
        """Health's `candidate`: as `policy`, of the one that is tried."""
        if self._readiness is not None:
            self._readiness.component("candidate", well)

    def _policy_state(self, well: bool) -> None:
        """Health's `policy`: not serving while the file there is bad and an older one serves."""
        if self._readiness is not None:
            self._readiness.component("policy", well)

    def _ledger_state(self, well: bool) -> None:
        """Health's `ledger`: not serving while rows go to the spool; calls are served."""
        if self._readiness is not None:
            self._readiness.component("ledger", well)

    def _open(self, address: str, tls: TlsSettings) -> grpc.aio.Channel:
        channel = open_channel(address, self._settings.server.max_message_bytes, tls)
        self._channels.append(channel)
        return channel
