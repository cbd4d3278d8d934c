"""How the command line talks to a router."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import grpc
import typer

from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2, router_pb2_grpc

# `tandem up` leaves the addresses of the running system here.
UP_FILE = Path("build/run/up.json")
DEFAULT_ADDRESS = "127.0.0.1:50051"

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_UNREACHABLE = 3
EXIT_TOO_LATE = 4
_EXIT_CODES = {
    grpc.StatusCode.INVALID_ARGUMENT: EXIT_BAD_INPUT,
    grpc.StatusCode.UNAVAILABLE: EXIT_UNREACHABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: EXIT_TOO_LATE,
}


def find_address(address: str) -> str:
    """The address given, else of the running `tandem up`, else the default."""
    if address:
        return address
    try:
        return str(json.loads(UP_FILE.read_text(encoding="utf-8"))["router"])
    except (OSError, ValueError, KeyError):
        return DEFAULT_ADDRESS


@dataclass(slots=True)
class RouterClient:
    """A synchronous client that always sets the native deadline beside `deadline_ms`."""

    address: str
    key: str = ""

    def metadata(self, deadline_ms: int) -> list[tuple[str, str]]:
        """What every call carries."""
        pairs = [("deadline_ms", str(deadline_ms)), ("x-request-id", str(uuid.uuid4()))]
        if self.key:
            pairs.append(("authorization", f"Bearer {self.key}"))
        return pairs

    def stream(
        self, request: router_pb2.RouteRequest, deadline_ms: int
    ) -> Iterator[router_pb2.RouteStreamResponse]:
        """Events of one answer. Raises grpc.RpcError."""
        with grpc.insecure_channel(self.address) as channel:
            stub: Any = router_pb2_grpc.RouterServiceStub(channel)
            yield from stub.RouteStream(
                router_pb2.RouteStreamRequest(request=request),
                timeout=deadline_ms / 1000.0,
                metadata=self.metadata(deadline_ms),
            )

    def decide(
        self, request: router_pb2.RouteRequest, deadline_ms: int
    ) -> router_pb2.DecideResponse:
        """The plan for a request. Raises grpc.RpcError."""
        with grpc.insecure_channel(self.address) as channel:
            stub: Any = router_pb2_grpc.RouterServiceStub(channel)
            response: router_pb2.DecideResponse = stub.Decide(
                router_pb2.DecideRequest(request=request),
                timeout=deadline_ms / 1000.0,
                metadata=self.metadata(deadline_ms),
            )
            return response


def build_request(
    question: str,
    *,
    system: str = "",
    task: str = "",
    session: str = "",
    max_tokens: int = 0,
    labels: str = "",
    schema: str = "",
    edge_only: bool = False,
    hold: bool = False,
) -> router_pb2.RouteRequest:
    """A request of one user turn."""
    request = router_pb2.RouteRequest(
        messages=[chat_pb2.Message(role=chat_pb2.ROLE_USER, content=question)],
        system=system,
        task_type=task,
        session_id=session,
        max_output_tokens=max_tokens,
    )
    if labels:
        request.output.labels.values.extend(label.strip() for label in labels.split(","))
    if schema:
        request.output.json_schema = schema
    if edge_only:
        request.privacy_hint = router_pb2.PRIVACY_HINT_KEEP_ON_EDGE
    if hold:
        request.stream_mode = router_pb2.STREAM_MODE_HOLD
    return request


def read_key() -> str:
    """The caller's API key, from TANDEM_API_KEY."""
    return os.environ.get("TANDEM_API_KEY", "")


def fail(error: grpc.RpcError, address: str) -> NoReturn:
    """Says in one sentence what went wrong and ends with the exit code that fits."""
    call: Any = error
    code, details = call.code(), call.details() or ""
    if code is grpc.StatusCode.UNAVAILABLE and "connect" in details.lower():
        details = f"Nothing listens on {address}. Start the system with: tandem up"
    elif code is grpc.StatusCode.DEADLINE_EXCEEDED:
        details = "No answer within the deadline. Give more time with --deadline-ms."
    typer.secho(f"{code.name}: {details}", fg="red", err=True)
    raise typer.Exit(_EXIT_CODES.get(code, EXIT_FAILED))
