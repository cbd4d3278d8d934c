"""Three real service processes, a fake model that saturates the cores, a scripted upstream."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cli.system import Child, System
from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2, edge_pb2_grpc
from tandem.router.v1 import router_pb2, router_pb2_grpc
from tests.fakes.upstream_process import UpstreamProcess

SETTLE_S = 10.0
# Where time is not the subject, a busy machine must not make the latency gate speak.
PATIENT_MS = 60_000
PATIENT: dict[str, Any] = {
    "timeout": PATIENT_MS / 1000.0,
    "metadata": [("deadline_ms", str(PATIENT_MS))],
}


def question(text: str, **fields: Any) -> router_pb2.RouteRequest:
    """A request of one user turn."""
    turn = chat_pb2.Message(role=chat_pb2.ROLE_USER, content=text)
    return router_pb2.RouteRequest(messages=[turn], **fields)


def eventually(check: Callable[[], bool], what: str, within_s: float = SETTLE_S) -> None:
    """Waits until `check` holds; AssertionError says what did not come."""
    end = time.monotonic() + within_s
    while not check():
        if time.monotonic() > end:
            raise AssertionError(f"did not come: {what}")
        time.sleep(0.02)


def read_ledger(file: Path) -> list[dict[str, Any]]:
    """Rows of a SQLite ledger, none where it is not made yet. Reads beside the router."""
    if not file.exists():
        return []
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='requests'").fetchone():
            return []
        rows = connection.execute("SELECT * FROM requests ORDER BY rowid").fetchall()
    return [_decoded(dict(row)) for row in rows]


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    for name in ("attempts", "pii_kinds", "stage_ms"):
        row[name] = json.loads(row[name])
    for name in ("usage_estimated", "degraded", "partial"):
        row[name] = bool(row[name])
    return row


@dataclass(slots=True)
class Result:
    """What a caller of RouteStream saw."""

    events: list[router_pb2.RouteStreamResponse] = field(default_factory=list)
    code: grpc.StatusCode = grpc.StatusCode.OK
    details: str = ""
    trailers: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """Text that stands at the end."""
        text = ""
        for event in self.events:
            text += event.chunk.text
            if event.HasField("superseded"):
                text = ""
        return text

    @property
    def outcome(self) -> router_pb2.Outcome:
        """The final event's outcome; AssertionError where the stream is not whole."""
        if not self.events or not self.events[-1].HasField("final"):
            raise AssertionError(f"stream not whole: {self.code} {self.details}")
        return self.events[-1].final.outcome

    @property
    def served(self) -> tuple[str, str, str, str]:
        """(level, target, reason, fallback type) from the decision trailer."""
        pairs = dict(part.split("=") for part in self.trailers["tandem-decision"].split(";"))
        return pairs["level"], pairs["target"], pairs["reason"], pairs["fallback_type"]


class Tandem:
    """One running system."""

    def __init__(
        self,
        run_dir: Path,
        edge: Mapping[str, str],
        *,
        edge_module: str = "tests.fakes.edge_main",
        **options: Mapping[str, str],
    ) -> None:
        self.system = System(run_dir)
        self.upstream = UpstreamProcess()
        self._edge_env = {"TANDEM_EDGE__SERVER__LISTEN": "127.0.0.1:0", **edge}
        self._edge_module = edge_module
        self._options = options
        self.ledger_file = run_dir / "ledger.db"
        self.edge, self.cloud = self._start_edge(), self._start_cloud()
        try:
            self._open()
        except BaseException:
            self.system.stop()
            self.upstream.close()
            raise

    def _open(self) -> None:
        self._ready(self.edge)
        self._ready(self.cloud)
        self.router = self._start_router()
        self._ready(self.router)
        self.channel = grpc.insecure_channel(self.router.address)
        self.stub: Any = router_pb2_grpc.RouterServiceStub(self.channel)
        self._wait_edge_seen()

    def _ready(self, child: Child) -> None:
        self.system.wait_ready(child, 60.0)

    def _start_edge(self) -> Child:
        return self.system.start(
            "edge", ["-m", self._edge_module, "--config", "config/edge.yaml"], self._edge_env
        )

    def _start_cloud(self) -> Child:
        environment = {
            "TANDEM_CLOUD__SERVER__LISTEN": "127.0.0.1:0",
            "TANDEM_CLOUD__TIERS__SMALL__BASE_URL": self.upstream.base_url,
            "TANDEM_CLOUD__TIERS__LARGE__BASE_URL": self.upstream.base_url,
            "TANDEM_CLOUD__TIERS__SMALL__MODEL": "small",
            "TANDEM_CLOUD__TIERS__LARGE__MODEL": "large",
            # As the router's breakers below.
            "TANDEM_CLOUD__TIERS__SMALL__BREAKER": "{min_calls: 100000}",
            "TANDEM_CLOUD__TIERS__LARGE__BREAKER": "{min_calls: 100000}",
            **self._options.get("cloud", {}),
        }
        module = "services.cloud_proxy.main"
        return self.system.start(
            "cloud", ["-m", module, "--config", "config/cloud.yaml"], environment
        )

    def _start_router(self) -> Child:
        environment = {
            "TANDEM_ROUTER__SERVER__LISTEN": "127.0.0.1:0",
            "TANDEM_ROUTER__EDGE__ADDRESS": self.edge.address,
            "TANDEM_ROUTER__CLOUD__ADDRESS": self.cloud.address,
            "TANDEM_ROUTER__LEDGER_URL": f"sqlite:///{self.ledger_file.absolute()}",
            # Faults of one test must not close a border for the next; test_breakers has its own.
            "TANDEM_ROUTER__BREAKERS": "{edge: {min_calls: 100000}, cloud: {min_calls: 100000}}",
            # Equal questions of different tests must each reach a model; test_cache has its own.
            "TANDEM_ROUTER__CACHE__ENABLED": "false",
            # Tests that need the embedder name it.
            "TANDEM_ROUTER__EMBEDDER_DIR": "no-embedder",
            **self._options.get("router", {}),
        }
        module = "services.router.main"
        return self.system.start("router", ["-m", module], environment)

    def restart_edge(self) -> None:
        """Starts the edge anew at its old address, and waits until the router sees it."""
        if self.edge.alive():
            self.edge.process.kill()
        self.edge.process.wait()
        self._edge_env["TANDEM_EDGE__SERVER__LISTEN"] = self.edge.address
        self.edge = self._start_edge()
        self._ready(self.edge)
        self._wait_edge_seen()

    def _wait_edge_seen(self) -> None:
        """The router's plan for a plain question begins at the edge again."""

        def seen() -> bool:
            plan = self.stub.Decide(
                router_pb2.DecideRequest(request=question("hello")), **PATIENT
            ).steps
            return any(s.step == "available" and s.inputs["edge_up"] == "True" for s in plan)

        eventually(seen, "the router sees the edge")
        # One report more, so that estimates are the new process's own.
        time.sleep(0.6)

    def stream(
        self,
        request: router_pb2.RouteRequest,
        *,
        deadline_ms: int = PATIENT_MS,
        on_event: Callable[[router_pb2.RouteStreamResponse], None] = lambda _: None,
    ) -> Result:
        """Calls RouteStream as our own client does: metadata and native deadline."""
        result, started = Result(), time.monotonic()
        call = self.stub.RouteStream(
            router_pb2.RouteStreamRequest(request=request),
            timeout=deadline_ms / 1000.0,
            metadata=[("deadline_ms", str(deadline_ms))],
        )
        try:
            for event in call:
                result.events.append(event)
                on_event(event)
        except grpc.RpcError:
            pass
        result.code, result.details = call.code(), call.details()
        result.trailers = dict(call.trailing_metadata() or ())
        result.seconds = time.monotonic() - started
        return result

    def ledger(self) -> list[dict[str, Any]]:
        """Rows so far, in the order they were stored."""
        return read_ledger(self.ledger_file)

    def wait_rows(self, request_id: str, count: int = 1) -> list[dict[str, Any]]:
        """The rows of one request, once there are `count`."""

        def rows() -> list[dict[str, Any]]:
            return [row for row in self.ledger() if row["request_id"] == request_id]

        eventually(lambda: len(rows()) >= count, f"ledger row of {request_id}")
        return rows()

    def lanes(self) -> list[edge_pb2.LaneLoad]:
        """The edge's load now."""
        with grpc.insecure_channel(self.edge.address) as channel:
            stub: Any = edge_pb2_grpc.EdgeWorkerServiceStub(channel)
            call = stub.WatchLoad(edge_pb2.WatchLoadRequest(interval_ms=100), timeout=10)
            report = next(call)
            call.cancel()
            return list(report.lanes)

    def edge_idle(self) -> bool:
        """No row holds a slot, none waits, and the pool is empty."""
        return all(
            lane.active == 0 and lane.queued == 0 and lane.kv_used_bytes == 0
            for lane in self.lanes()
        )

    def healthy(self, child: Child, component: str = "readiness") -> bool:
        """gRPC health says the component is served."""
        with grpc.insecure_channel(child.address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            request = health_pb2.HealthCheckRequest(service=component)
            return bool(stub.Check(request, timeout=5).status == 1)

    @contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """SIGSTOP for a while."""
        pid = self.pid(name)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def pid(self, name: str) -> int:
        """Process id of a service, or of the upstream."""
        if name == "upstream":
            return self.upstream.pid
        return int(self.system.children[name].process.pid)

    def close(self) -> None:
        """Stops everything."""
        self.channel.close()
        self.system.stop()
        self.upstream.close()
