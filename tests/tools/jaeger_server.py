"""A real Jaeger on free ports, for tests: built from its Go module, OTLP in, query API out."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

MODULE = Path(__file__).parent / "jaeger"
PACKAGE = "github.com/jaegertracing/jaeger/cmd/all-in-one"
BINARY = Path("build/jaeger/all-in-one")
START_S = 30.0
_HOW = "make jaeger (needs Go 1.25 or newer; five minutes on two cores, seconds afterwards)"
_MICROS = 1e6


def jaeger_binary() -> Path:
    """The built Jaeger; RuntimeError where it is not built, or from another version."""
    stamp = BINARY.with_suffix(".sum")
    if not BINARY.exists() or not stamp.exists() or stamp.read_bytes() != _wanted():
        raise RuntimeError(f"no Jaeger is built here: {_HOW}")
    return BINARY


def build_jaeger() -> Path:
    """Builds it where it is not built yet; Go's own cache keeps what it compiled.

    Raises:
        FileNotFoundError: Go is missing.
        CalledProcessError: The build failed.
    """
    BINARY.parent.mkdir(parents=True, exist_ok=True)
    output = str(BINARY.absolute())
    # -s -w: no debugging tables, a third smaller and sooner linked.
    command = ["go", "build", "-mod=readonly", "-ldflags=-s -w", "-o", output, PACKAGE]
    subprocess.run(command, cwd=MODULE, check=True)
    BINARY.with_suffix(".sum").write_bytes(_wanted())
    return BINARY


def _wanted() -> bytes:
    return (MODULE / "go.mod").read_bytes()


@dataclass(frozen=True, slots=True)
class JaegerSpan:
    """A span as the query API tells it; times in seconds."""

    service: str
    name: str
    span_id: str
    parent_id: str
    start_s: float
    duration_s: float
    tags: dict[str, Any]
    events: tuple[dict[str, Any], ...]

    @property
    def end_s(self) -> float:
        """When it ended."""
        return self.start_s + self.duration_s

    @property
    def failed(self) -> bool:
        """Its status is an error."""
        return self.tags.get("otel.status_code") == "ERROR"


class JaegerServer:
    """`with JaegerServer() as jaeger:` keeps spans in memory."""

    def __init__(self) -> None:
        self._binary = jaeger_binary()
        self._folder = tempfile.TemporaryDirectory(prefix="jaeger-")
        names = ("otlp", "query", "otlp_http", "query_grpc", "http", "grpc", "admin")
        self._ports = dict(zip(names, _free_ports(len(names)), strict=True))
        self.otlp_address = f"127.0.0.1:{self._ports['otlp']}"
        self.query_url = f"http://127.0.0.1:{self._ports['query']}"
        self._process: subprocess.Popen[bytes] | None = None

    def spans(self, trace_id: str) -> list[JaegerSpan]:
        """Spans of one trace so far; none where Jaeger does not know it yet."""
        try:
            body = _get_json(f"{self.query_url}/api/traces/{trace_id}")
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 404:
                return []
            raise
        return [
            _read(span, trace["processes"]) for trace in body["data"] for span in trace["spans"]
        ]

    def services(self) -> set[str]:
        """Names of services that have sent spans."""
        return set(_get_json(f"{self.query_url}/api/services")["data"] or ())

    def _options(self) -> list[str]:
        flags = {
            "collector.otlp.grpc.host-port": "otlp",
            "collector.otlp.http.host-port": "otlp_http",
            "query.http-server.host-port": "query",
            "query.grpc-server.host-port": "query_grpc",
            "collector.http-server.host-port": "http",
            "collector.grpc-server.host-port": "grpc",
            "admin.http.host-port": "admin",
        }
        return [f"--{flag}=127.0.0.1:{self._ports[name]}" for flag, name in flags.items()]

    def __enter__(self) -> JaegerServer:
        log = Path(self._folder.name) / "jaeger.log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [self._binary.absolute(), "--collector.otlp.enabled=true", *self._options()],
                stdout=output,
                stderr=output,
                env={**os.environ, "SPAN_STORAGE_TYPE": "memory"},
            )
        end = time.monotonic() + START_S
        while time.monotonic() < end and self._process.poll() is None:
            if _answers(f"{self.query_url}/api/services"):
                return self
            time.sleep(0.05)
        self._stop()
        raise RuntimeError(f"Jaeger did not start: {log.read_text()[-800:]}")

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        self._folder.cleanup()


def _read(span: dict[str, Any], processes: dict[str, Any]) -> JaegerSpan:
    parents = [r["spanID"] for r in span["references"] if r["refType"] == "CHILD_OF"]
    return JaegerSpan(
        service=processes[span["processID"]]["serviceName"],
        name=span["operationName"],
        span_id=span["spanID"],
        parent_id=parents[0] if parents else "",
        start_s=span["startTime"] / _MICROS,
        duration_s=span["duration"] / _MICROS,
        tags=_pairs(span["tags"]),
        events=tuple(_pairs(log["fields"]) for log in span["logs"]),
    )


def _pairs(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {field["key"]: field["value"] for field in fields}


def _free_ports(count: int) -> list[int]:
    """Ports that were free together a moment ago."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _get_json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as reply:
        return json.load(reply)


def _answers(url: str) -> bool:
    try:
        _get_json(url)
    except OSError:
        return False
    return True


def main() -> int:
    """Builds; where Go is missing it says what that means, and fails nothing."""
    if shutil.which("go") is None:
        print("Go is not on PATH: no trace will be read back from a real Jaeger")
        return 0
    print(build_jaeger())
    return 0


if __name__ == "__main__":
    sys.exit(main())
