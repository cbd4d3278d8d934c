"""Mutual TLS of a real proxy process: only a certificate of its authority connects."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.common.errors import ConfigInvalid
from services.common.rpc.outward import open_channel
from services.common.rpc.tls import server_credentials
from services.common.settings import TlsSettings, validate
from tests.fakes.upstream_process import wait_ready
from tests.tools.certificates import Authority

TIER = {"base_url": "http://127.0.0.1:1/v1", "model": "m"}


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    ours = Authority(tmp_path, "ca")
    server = ours.issue("server")
    ours.issue("router")
    Authority(tmp_path, "stranger-ca").issue("stranger")
    tls = {
        "cert_file": str(server.cert),
        "key_file": str(server.key),
        "ca_file": str(ours.ca.cert),
        "require_client_cert": True,
    }
    config = tmp_path / "cloud.yaml"
    tiers = {"small": TIER, "large": TIER}
    config.write_text(yaml.safe_dump({"server": {"tls": tls}, "tiers": tiers}))
    ready = tmp_path / "ready.json"
    env = {**os.environ, "TANDEM_SERVICE_SECRET": "s" * 40, "TANDEM_READY_FILE": str(ready)}
    command = [sys.executable, "-m", "services.cloud_proxy.main", "--config", str(config)]
    with subprocess.Popen(command, env=env) as process:
        try:
            yield wait_ready(process, ready)
        finally:
            process.kill()


async def reaches(address: str, folder: Path, ca: str = "", name: str = "") -> bool:
    files: dict[str, Any] = {"ca_file": str(folder / f"{ca}.pem")} if ca else {}
    if name:
        files |= {"cert_file": str(folder / f"{name}.pem"), "key_file": str(folder / f"{name}.key")}
    async with open_channel(address, 1_024, TlsSettings.model_validate(files)) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        try:
            await health.Check(health_pb2.HealthCheckRequest(), timeout=5)
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.UNAVAILABLE
            return False
    return True


async def test_only_certificates_of_our_authority_connect(address: str, tmp_path: Path) -> None:
    assert await reaches(address, tmp_path, "ca", "router")
    refused = [
        reaches(address, tmp_path),
        reaches(address, tmp_path, "ca"),
        reaches(address, tmp_path, "ca", "stranger"),
        reaches(address, tmp_path, "stranger-ca", "router"),
    ]
    assert await asyncio.gather(*refused) == [False] * 4


@pytest.mark.parametrize(
    "files",
    [{"cert_file": "a"}, {"key_file": "a"}, {"require_client_cert": True, "ca_file": "a"}],
)
def test_files_that_do_not_fit_together(files: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid):
        validate(TlsSettings, files, "cloud.yaml")


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        server_credentials(TlsSettings(cert_file="/absent", key_file="/absent"))
