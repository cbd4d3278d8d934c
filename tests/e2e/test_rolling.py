"""Each service is replaced, process by process, under traffic: nothing fails, new ones get calls.

As in a cluster: two processes of each behind a name of their own, found by `dns:///` and
`round_robin`; a new process has a new address, comes into DNS when it is ready, and the old
one leaves DNS when it is told to go.
"""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from cli.system import Child, System
from services.common.rpc.outward import channel_options
from tandem.common.v1 import decision_pb2
from tandem.router.v1 import router_pb2, router_pb2_grpc
from tests.e2e.harness import PATIENT, eventually, question
from tests.fakes.dns_server import DnsServer
from tests.fakes.upstream_process import UpstreamProcess

PER_SECOND = 20
SHARED = 2
# What a service logs for each call that it served.
SERVED = {"router": '"event": "request"', "edge": '"event": "generate"', "cloud": '"upstream_call"'}
MODULES = {
    "router": ["-m", "services.router.main"],
    "edge": ["-m", "tests.fakes.edge_main", "--config", "config/edge.yaml"],
    "cloud": ["-m", "services.cloud_proxy.main", "--config", "config/cloud.yaml"],
}


@dataclass(slots=True)
class Fleet:
    """Two processes of one service: one port, an address for each."""

    system: System
    dns: DnsServer
    name: str
    environment: dict[str, str]
    hosts: Iterator[int]
    port: int = 0
    running: list[Child] = field(default_factory=list)

    def begin(self) -> None:
        """Starts the first ones, and does not wait."""
        self.port = _port_free_everywhere()
        self.running = [self.start() for _ in range(SHARED)]

    def ready(self) -> None:
        """Waits for them, and tells DNS."""
        for child in self.running:
            self.system.wait_ready(child, 60)
        self.publish()

    def start(self) -> Child:
        """One more process, at an address of its own."""
        host = next(self.hosts)
        key = f"TANDEM_{self.name.upper()}__SERVER__LISTEN"
        environment = {**self.environment, key: f"127.0.0.{host}:{self.port}"}
        if self.name == "router":
            ledger = self.system.run_dir / f"ledger-{host}.db"
            environment["TANDEM_ROUTER__LEDGER_URL"] = f"sqlite:///{ledger.absolute()}"
        return self.system.start(f"{self.name}-{host}", MODULES[self.name], environment)

    def publish(self) -> None:
        """Tells DNS who is ready."""
        self.dns.put(f"{self.name}.test", [c.address.split(":")[0] for c in self.running])

    @property
    def target(self) -> str:
        """Where callers find it."""
        return self.dns.target(f"{self.name}.test", self.port)

    def replace_all(self) -> list[Child]:
        """A rolling restart; returns the new ones."""
        fresh = [self.start() for _ in range(SHARED)]
        for old, new in zip(list(self.running), fresh, strict=True):
            self.system.wait_ready(new, 60)
            self.running = [*(each for each in self.running if each is not old), new]
            self.publish()
            old.process.terminate()
            assert old.process.wait(30) == 0
        return fresh

    def served(self, child: Child) -> int:
        """Calls so far."""
        return child.log_file.read_text(encoding="utf-8").count(SERVED[self.name])


def _port_free_everywhere() -> int:
    with socket.create_server(("0.0.0.0", 0)) as free:
        return int(free.getsockname()[1])


class Traffic:
    """20 requests a second by one caller, in turn for the edge and for the cloud."""

    def __init__(self, target: str) -> None:
        options = [*channel_options(4 * 1024 * 1024), ("grpc.use_local_subchannel_pool", 1)]
        self._channel = grpc.insecure_channel(target, options)
        self.stub: Any = router_pb2_grpc.RouterServiceStub(self._channel)
        self.ended: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send, name="traffic")

    def _send(self) -> None:
        calls = []
        for number in itertools.count():
            if self._stop.is_set():
                break
            call = threading.Thread(target=self._one, args=(number % 2 == 0,))
            call.start()
            calls.append(call)
            time.sleep(1 / PER_SECOND)
        for call in calls:
            call.join()

    def _one(self, easy: bool) -> None:
        try:
            reply = self.stub.Route(_easy() if easy else _hard(), **PATIENT)
            level = decision_pb2.Level.Name(reply.outcome.decision.level)
            ended = f"{'easy' if easy else 'hard'} {level}"
        except grpc.RpcError as error:
            ended = f"{error.code()} {error.details()}"
        with self._lock:
            self.ended[ended] += 1

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._channel.close()


def _easy() -> router_pb2.RouteRequest:
    return question("hello [[say:Hi.]]")


def _hard() -> router_pb2.RouteRequest:
    request = question("hello [[say:no]]")
    request.output.labels.values.extend(["refund", "complaint"])
    return request


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Fleet]]:
    system = System(Path(tmp_path_factory.mktemp("rolling")))
    hosts = itertools.count(2)
    # As in deploy/k8s/base: who goes serves until every connection has come of age.
    drain = {"MAX_CONNECTION_AGE_MS": "2000", "LEAVE_MS": "2500", "DRAIN_MS": "20000"}
    with UpstreamProcess() as upstream, DnsServer() as dns:
        upstream.default(text="refund")
        environments = {
            "edge": {
                "TANDEM_FAKE_EDGE__BURN": "false",
                "TANDEM_FAKE_EDGE__HOLD_FORMS": "false",
            },
            "cloud": {
                f"TANDEM_CLOUD__TIERS__{tier}__{key}": value
                for tier in ("SMALL", "LARGE")
                for key, value in {"BASE_URL": upstream.base_url, "MODEL": tier.lower()}.items()
            },
            "router": {
                "TANDEM_ROUTER__CACHE__ENABLED": "false",
                "TANDEM_ROUTER__EMBEDDER_DIR": "no-embedder",
            },
        }
        fleets = {}
        try:
            for name, environment in environments.items():
                prefix = f"TANDEM_{name.upper()}__SERVER__"
                environment |= {f"{prefix}{key}": value for key, value in drain.items()}
                fleet = Fleet(system, dns, name, environment, hosts)
                fleets[name] = fleet
                if name == "router":
                    environment["TANDEM_ROUTER__EDGE__ADDRESS"] = fleets["edge"].target
                    environment["TANDEM_ROUTER__CLOUD__ADDRESS"] = fleets["cloud"].target
                fleet.begin()
            for fleet in fleets.values():
                fleet.ready()
            yield fleets
        finally:
            system.stop()


@pytest.mark.parametrize("name", ["edge", "cloud", "router"])
def test_a_rolling_restart_under_traffic_fails_nothing(fleets: dict[str, Fleet], name: str) -> None:
    with Traffic(fleets["router"].target) as traffic:
        eventually(lambda: sum(traffic.ended.values()) > PER_SECOND, "traffic flows", 30)
        fleet = fleets[name]
        fresh = fleet.replace_all()
        for new in fresh:
            eventually(lambda new=new: fleet.served(new) > 0, f"{new.name} gets traffic", 30)  # type: ignore[misc]
    ended = dict(traffic.ended)
    assert set(ended) == {"easy LEVEL_L0", "hard LEVEL_L2"}, ended
