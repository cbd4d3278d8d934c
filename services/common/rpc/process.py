"""The life of a service process: start, be ready, drain, stop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

import grpc
import structlog
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from services.common.errors import ConfigInvalid, TandemError
from services.common.rpc.entrance import Admission, Entrance
from services.common.rpc.outward import server_options
from services.common.rpc.plain import PlainPort
from services.common.rpc.readiness import SERVING, Readiness
from services.common.rpc.tls import server_credentials
from services.common.settings import ServerSettings, TelemetrySettings
from services.common.telemetry.level import LogLevel
from services.common.telemetry.looplag import LoopLag
from services.common.telemetry.setup import start_telemetry

_log = structlog.get_logger()
# `tandem up` and the tests name a file here; the process writes its port into it when ready.
READY_FILE_ENV = "TANDEM_READY_FILE"


class App(Protocol):
    """What a service hands to `run_service`."""

    @property
    def name(self) -> str:
        """Short name: router, edge, cloud."""

    @property
    def service_names(self) -> Sequence[str]:
        """Full gRPC service names, for health and reflection."""

    @property
    def admission(self) -> Admission:
        """Who may call."""

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the servicers."""

    async def start(self, readiness: Readiness) -> None:
        """Loads and warms; readiness follows, and may be taken back through `readiness`."""

    async def stop(self) -> None:
        """Ends what `start` began, after the last call."""


def run_service(
    make_app: Callable[[], App], server: ServerSettings, telemetry: TelemetrySettings, name: str
) -> int:
    """Runs a service until SIGTERM or SIGINT; returns the exit code."""
    started = start_telemetry(name, telemetry)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(make_app(), server, telemetry))
        return 0
    except TandemError as error:
        _log.error("start_failed", reason=error.reason, error=error.message)
        return 2
    finally:
        started.close()


async def _serve(app: App, settings: ServerSettings, telemetry: TelemetrySettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, LogLevel(telemetry.log_level).toggle)
    server = grpc.aio.server(
        interceptors=[Entrance(app.admission, settings.max_concurrent_calls)],
        options=server_options(settings),
        # Behind our own bound, for health checks and for refusals under way.
        maximum_concurrent_rpcs=2 * settings.max_concurrent_calls,
    )
    health = HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    app.register(server)
    reflection.enable_server_reflection(
        [*app.service_names, "grpc.health.v1.Health", reflection.SERVICE_NAME], server
    )
    readiness = Readiness(health, app.service_names)
    await health.set("liveness", SERVING)
    await readiness.set(False)
    port = _bind(server, settings)
    plain = PlainPort(lambda: readiness.ready)
    plain_address = await plain.open(listen) if (listen := telemetry.metrics_listen) else ""
    await server.start()
    lag = LoopLag()
    lag.start()
    try:
        if await _unless_stopped(app.start(readiness), stop):
            await readiness.set(True)
            _announce(app.name, settings.listen, port, plain_address)
            await stop.wait()
            await readiness.leave()
            _log.info("leaving", leave_ms=settings.leave_ms)
            await asyncio.sleep(settings.leave_ms / 1000.0)
    finally:
        _log.info("draining", drain_ms=settings.drain_ms)
        await readiness.leave()
        readiness.draining.set()
        await server.stop(settings.drain_ms / 1000.0)
        await app.stop()
        await lag.stop()
        await plain.close()
        _log.info("stopped", worst_loop_lag_ms=round(lag.worst_ms, 1))


async def _unless_stopped(work: Awaitable[None], stop: asyncio.Event) -> bool:
    """Runs `work`; False where a signal came first."""
    running = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(stop.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not running.done():
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return False
    await running
    return not stop.is_set()


def _bind(server: grpc.aio.Server, settings: ServerSettings) -> int:
    listen, credentials = settings.listen, server_credentials(settings.tls)
    try:
        port: int = (
            server.add_insecure_port(listen)
            if credentials is None
            else server.add_secure_port(listen, credentials)
        )
    except RuntimeError as exc:
        raise ConfigInvalid(f"server.listen: cannot listen on {listen}: in use?") from exc
    return port


def _announce(name: str, listen: str, port: int, plain_address: str) -> None:
    host = listen.rpartition(":")[0]
    told = {"address": f"{host}:{port}", "metrics_address": plain_address}
    _log.info("ready", **told, pid=os.getpid())
    target = os.environ.get(READY_FILE_ENV)
    if target:
        partial = Path(target).with_suffix(".partial")
        partial.write_text(json.dumps({"name": name, **told}))
        partial.replace(target)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # Windows has none; asyncio's own loop serves there.
        return None
    return uvloop.new_event_loop
