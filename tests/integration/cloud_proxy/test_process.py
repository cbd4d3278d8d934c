"""The proxy as a process: ready file, health, reflection, drain, refusal to start."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.common.identity import CLAIM_KEY, service_token, sign_claim
from services.common.rpc.outward import open_channel
from tandem.cloud.v1 import cloud_pb2_grpc
from tests.fakes.upstream_process import UpstreamProcess, wait_ready
from tests.integration.cloud_proxy.conftest import MESSAGE_BYTES, SECRET, ask, tier

COMMAND = [sys.executable, "-m", "services.cloud_proxy.main", "--config"]


@contextmanager
def proxy_process(folder: Path, upstream: UpstreamProcess) -> Iterator[tuple[Any, str]]:
    config = folder / "cloud.yaml"
    tiers = {size: tier(upstream.base_url, api_key_env="") for size in ("small", "large")}
    config.write_text(yaml.safe_dump({"server": {"drain_ms": 5_000}, "tiers": tiers}))
    ready = folder / "ready.json"
    env = {**os.environ, "TANDEM_SERVICE_SECRET": SECRET, "TANDEM_READY_FILE": str(ready)}
    with subprocess.Popen([*COMMAND, str(config)], env=env) as process:
        try:
            yield process, wait_ready(process, ready)
        finally:
            process.kill()


async def test_serves_drains_and_ends(tmp_path: Path, upstream: UpstreamProcess) -> None:
    upstream.default(text="a b c d e f g h", chunk_ms=100)
    with proxy_process(tmp_path, upstream) as (process, address):
        async with open_channel(address, MESSAGE_BYTES) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            for service in ("", "readiness", "liveness", "tandem.cloud.v1.CloudProxyService"):
                reply = await health.Check(health_pb2.HealthCheckRequest(service=service))
                assert reply.status == health_pb2.HealthCheckResponse.SERVING
            metadata = (
                ("authorization", f"Bearer {service_token(SECRET, 'router')}"),
                (CLAIM_KEY, sign_claim(SECRET, "acme", time.time())),
            )
            stub: Any = cloud_pb2_grpc.CloudProxyServiceStub(channel)
            text = ""
            async for event in stub.Generate(ask("hi"), metadata=metadata, timeout=20):
                if event.WhichOneof("event") == "started":
                    process.send_signal(signal.SIGTERM)
                text += event.delta.text
        assert text == "a b c d e f g h"
        assert await asyncio.to_thread(process.wait, 20) == 0


@pytest.mark.parametrize("secret", ["", "too short"])
def test_refuses_to_start_without_a_proper_secret(tmp_path: Path, secret: str) -> None:
    config = tmp_path / "cloud.yaml"
    tiers = {size: tier("http://127.0.0.1:1/v1", api_key_env="") for size in ("small", "large")}
    config.write_text(yaml.safe_dump({"tiers": tiers}))
    done = subprocess.run(
        [*COMMAND, str(config)],
        env={**os.environ, "TANDEM_SERVICE_SECRET": secret},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "service_secret_file" in done.stderr
