"""Two proxy processes that share Redis, and Redis stopped in the middle."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.common.rpc.outward import open_channel
from tandem.cloud.v1 import cloud_pb2_grpc
from tests.fakes.upstream_process import UpstreamProcess, wait_ready
from tests.integration.cloud_proxy.conftest import MESSAGE_BYTES, PRICES, SECRET, Proxy, tier
from tests.integration.cloud_proxy.limits.test_calls import REAL, ask
from tests.tools.redis_server import RedisServer

COMMAND = [sys.executable, "-m", "services.cloud_proxy.main", "--config"]


def write_config(folder: Path, base_url: str, **limits: Any) -> Path:
    config = folder / "cloud.yaml"
    tiers = {size: tier(base_url, api_key_env="") for size in ("small", "large")}
    settings = {"tiers": tiers, "prices": PRICES, "replicas": 2, "limits": limits}
    config.write_text(yaml.safe_dump(settings))
    return config


@pytest.fixture
def mortal() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def addresses(
    tmp_path: Path, upstream: UpstreamProcess, mortal: RedisServer
) -> Iterator[list[str]]:
    """Two processes with 1,000 tokens a minute together."""
    config = write_config(tmp_path, upstream.base_url, tenant={"tokens_per_min": 1_000})
    env = {**os.environ, "TANDEM_SERVICE_SECRET": SECRET, "TANDEM_REDIS_URL": mortal.url}
    with ExitStack() as stack:
        started = []
        for ready in (tmp_path / "one.json", tmp_path / "two.json"):
            named = {**env, "TANDEM_READY_FILE": str(ready)}
            process = stack.enter_context(subprocess.Popen([*COMMAND, str(config)], env=named))
            stack.callback(process.kill)
            started.append((process, ready))
        yield [wait_ready(process, ready) for process, ready in started]


@pytest.fixture
async def two(addresses: list[str]) -> AsyncIterator[list[Proxy]]:
    async with AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(open_channel(address, MESSAGE_BYTES))
            for address in addresses
        ]
        yield [Proxy(cloud_pb2_grpc.CloudProxyServiceStub(channel)) for channel in channels]


async def served(proxies: list[Proxy], calls: int) -> int:
    answers = await asyncio.gather(*(ask(proxies[n % len(proxies)]) for n in range(calls)))
    reasons = {error.remote_reason for error, _ in answers if error is not None}
    assert reasons <= {"RATE_LIMITED"}
    return sum(error is None for error, _ in answers)


async def test_fifty_parallel_calls_over_two_processes(
    two: list[Proxy], upstream: UpstreamProcess
) -> None:
    upstream.default(**REAL)
    assert await served(two, 50) == 10
    assert len(upstream.seen()) == 10


async def test_redis_stops_in_the_middle_and_comes_back(
    two: list[Proxy], upstream: UpstreamProcess, mortal: RedisServer
) -> None:
    upstream.default(**REAL)
    assert await served(two, 6) == 6
    mortal.stop()
    # Each process alone holds the same limit, counted from nothing.
    assert await served(two, 50) == 20
    mortal.start()
    await asyncio.sleep(1.5)
    # Back, empty; the 2 x 10 calls that were granted without it are charged there.
    assert await served(two, 10) == 0
    assert len(upstream.seen()) == 26


def test_replicas_without_redis_refuse_to_start(tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1/v1")
    env = {**os.environ, "TANDEM_SERVICE_SECRET": SECRET, "TANDEM_REDIS_URL": ""}
    done = subprocess.run(
        [*COMMAND, str(config)], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "replicas" in done.stderr
    assert "TANDEM_REDIS_URL" in done.stderr
