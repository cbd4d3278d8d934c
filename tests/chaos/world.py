"""The system under fire: every process, every store, and a relay on every hop."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import grpc
import psycopg

from cli.system import Child, System
from tandem.router.v1 import router_pb2, router_pb2_grpc
from tests.chaos.relay import Ends, Relays
from tests.e2e.harness import PATIENT, eventually, question
from tests.fakes.upstream_process import UpstreamProcess
from tests.tools.postgres_server import PostgresServer
from tests.tools.redis_server import RedisServer

HOPS = ("edge", "cloud", "upstream", "redis", "postgres", "router")
# As a provider behaves at rest: 100 ms to the first word, 20 ms a word.
WELL: dict[str, Any] = {
    "text": "The large model answers at once. " + "Here is one word more. " * 2,
    "ttft_ms": 100,
    "chunk_ms": 20,
}
_BREAKERS = "{edge: {failure_share: 0.5, cool_s: 1}, cloud: {failure_share: 0.2, cool_s: 1}}"
_EDGE = {
    # Sleeps instead of burning: the two cores are for the processes that are under test.
    "TANDEM_FAKE_EDGE__BURN": "false",
    "TANDEM_FAKE_EDGE__DECODE_MS": "3",
    "TANDEM_FAKE_EDGE__PREFILL_TOKEN_MS": "0.02",
    # It must be able to take over all callers of a wave where the cloud is gone.
    "TANDEM_EDGE__LANES__SIMPLE__MAX_QUEUE": "128",
}
_SPOOL_BYTES = 8 * 1024 * 1024


def free_port() -> int:
    """A port that nobody has now."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def can_mount() -> bool:
    """Whether a small disk can be made, to be filled."""
    return os.geteuid() == 0 and shutil.which("mount") is not None


class World:
    """Starts everything; `close` ends it. Blocking."""

    def __init__(
        self,
        run_dir: Path,
        *,
        host: str = "127.0.0.1",
        environment: Mapping[str, str] | None = None,
        wrap: tuple[str, ...] = (),
        near: str = "127.0.0.1",
    ) -> None:
        """Args:
        run_dir: Logs, ready files, spools.
        host: Where edge and cloud proxy listen.
        environment: More for the three services.
        wrap: What edge and cloud proxy are started by, such as `ip netns exec NAME`.
        near: Where the relay to the upstream listens, as the cloud proxy sees it.
        """
        self.run_dir, self._host, self._wrap = run_dir, host, wrap
        self._more = dict(environment or {})
        self.system = System(run_dir)
        self._stack = ExitStack()
        try:
            self._open(near)
        except BaseException:
            self.close()
            raise

    def _open(self, near: str) -> None:
        self.ports = {name: free_port() for name in ("edge", "cloud", "upstream", "router")}
        self.redis = self._stack.enter_context(RedisServer())
        self.postgres = self._stack.enter_context(PostgresServer())
        far = {
            "edge": (self._host, self.ports["edge"]),
            "cloud": (self._host, self.ports["cloud"]),
            "upstream": ("127.0.0.1", self.ports["upstream"]),
            "redis": ("127.0.0.1", self.redis.port),
            "postgres": ("127.0.0.1", self.postgres.port),
            "router": ("127.0.0.1", self.ports["router"]),
        }
        hosts = dict.fromkeys(HOPS, "127.0.0.1") | {"upstream": near}
        ends: dict[str, Ends] = {hop: (hosts[hop], free_port(), *far[hop]) for hop in HOPS}
        self.relays = Relays(ends)
        self._stack.callback(self.relays.close)
        self._disk()
        self.start_upstream()
        for name in ("edge", "cloud"):
            self.start(name)
        self.start("router")
        self.wait_well()

    def _disk(self) -> None:
        self.spool = self.run_dir / "spool"
        self.spool.mkdir(parents=True)
        if can_mount():
            size = f"size={_SPOOL_BYTES}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "spool", self.spool], check=True)
            self._stack.callback(subprocess.run, ["umount", "-l", str(self.spool)], check=False)

    def start_upstream(self) -> None:
        """Starts it, at its old port."""
        os.environ["FAKE_UPSTREAM_PORT"] = str(self.ports["upstream"])
        try:
            self.upstream = UpstreamProcess()
        finally:
            del os.environ["FAKE_UPSTREAM_PORT"]
        self.upstream.default(**WELL)

    def start(self, name: str) -> Child:
        """Starts a service, at its old port, and waits until it is ready."""
        arguments, environment = getattr(self, f"_{name.partition('-')[0]}")(name)
        environment = {**self._more, **environment}
        child = self.system.start(name, arguments, environment)
        self.system.wait_ready(child, 60.0)
        return child

    def _run(self, *arguments: str) -> list[str]:
        """`System.start` calls Python, so what wraps it is called by a small program."""
        if not self._wrap:
            return list(arguments)
        code = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"
        return ["-c", code, *self._wrap, sys.executable, *arguments]

    def _edge(self, name: str) -> tuple[list[str], dict[str, str]]:
        listen = f"{self._host}:{self.ports['edge']}"
        return (
            self._run("-m", "tests.fakes.edge_main", "--config", "config/edge.yaml"),
            {**_EDGE, "TANDEM_EDGE__SERVER__LISTEN": listen},
        )

    def _cloud(self, name: str) -> tuple[list[str], dict[str, str]]:
        environment = {
            "TANDEM_CLOUD__SERVER__LISTEN": f"{self._host}:{self.ports['cloud']}",
            "TANDEM_REDIS_URL": self._url("redis", self.redis.url),
        }
        for tier in ("SMALL", "LARGE"):
            prefix = f"TANDEM_CLOUD__TIERS__{tier}__"
            base = f"http://{self.relays.address('upstream')}/v1"
            environment[f"{prefix}BASE_URL"] = base
            environment[f"{prefix}MODEL"] = tier.lower()
            environment[f"{prefix}BREAKER"] = "{failure_share: 0.2, cool_s: 1}"
        module = "services.cloud_proxy.main"
        return self._run("-m", module, "--config", "config/cloud.yaml"), environment

    def _router(self, name: str) -> tuple[list[str], dict[str, str]]:
        port = self.ports.setdefault(name, free_port())
        return ["-m", "services.router.main"], {
            "TANDEM_ROUTER__SERVER__LISTEN": f"127.0.0.1:{port}",
            "TANDEM_ROUTER__EDGE__ADDRESS": self.relays.address("edge"),
            "TANDEM_ROUTER__CLOUD__ADDRESS": self.relays.address("cloud"),
            "TANDEM_ROUTER__LEDGER_URL": self._url("postgres", self.postgres.url),
            "TANDEM_ROUTER__LEDGER_SPOOL_DIR": str(self.spool / name),
            "TANDEM_ROUTER__BREAKERS": _BREAKERS,
            "TANDEM_ROUTER__CACHE__EXACT_URL": self._url("redis", self.redis.url),
            "TANDEM_ROUTER__EMBEDDER_DIR": "no-embedder",
        }

    def _url(self, hop: str, direct: str) -> str:
        _, near, _, far = self.relays.ends[hop]
        return direct.replace(f":{far}/", f":{near}/")

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Ends a process and waits for its end."""
        if name == "upstream":
            os.kill(self.upstream.pid, number)
            self.upstream.close()
            return
        process = self.system.children[name].process
        with suppress(ProcessLookupError):
            os.kill(self.pid(name), number)
        process.wait(30)

    def again(self, name: str) -> None:
        """Starts what `kill` ended."""
        if name == "upstream":
            self.start_upstream()
        else:
            self.start(name)

    def pid(self, name: str) -> int:
        """Of a service, or of the upstream."""
        if name == "upstream":
            return self.upstream.pid
        return int(self.system.children[name].process.pid)

    def wait_well(self, router: str = "router") -> None:
        """Until a router plans for both sides again."""
        with grpc.insecure_channel(f"127.0.0.1:{self.ports[router]}") as channel:
            stub = router_pb2_grpc.RouterServiceStub(channel)

            def seen() -> bool:
                # No caller waits here: the channel may be in its pause after a refusal.
                with suppress(grpc.RpcError):
                    request = router_pb2.DecideRequest(request=question("hello"))
                    steps = stub.Decide(request, **PATIENT, wait_for_ready=True).steps
                    return any(
                        s.step == "available" and s.inputs["edge_up"] == "True" for s in steps
                    )
                return False

            eventually(seen, f"{router} sees the edge", 30.0)

    def stored(self) -> dict[str, int]:
        """Rows by request id."""
        with psycopg.connect(self.postgres.url) as connection:
            found = connection.execute(
                "SELECT request_id, count(*) FROM requests GROUP BY request_id"
            )
            return {str(name): int(count) for name, count in found}

    def wait_stored(self, wanted: set[str], within_s: float = 40.0) -> dict[str, int]:
        """Rows, once all that are wanted are there or time is up."""
        end = time.monotonic() + within_s
        while True:
            rows = self.stored()
            if wanted <= set(rows) or time.monotonic() > end:
                return rows
            time.sleep(0.3)

    def close(self) -> None:
        """Ends everything."""
        for child in self.system.children.values():
            with suppress(ProcessLookupError):
                os.kill(child.process.pid, signal.SIGCONT)
        self.system.stop()
        if hasattr(self, "upstream"):
            with suppress(ProcessLookupError):
                os.kill(self.upstream.pid, signal.SIGCONT)
            self.upstream.close()
        self._stack.close()


Act = Callable[[], None]
