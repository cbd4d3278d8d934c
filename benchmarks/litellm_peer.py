"""LiteLLM's proxy and our router with the cloud proxy, in front of one fake upstream.

    python -m benchmarks.router_overhead --litellm

LiteLLM is a peer in benchmarks only, in a virtual environment of its own (see `INSTALL`). One
worker, one caller, no stream, the same constant upstream behind both, rounds in turn. CPU is the
kernel's account of the processes in between: LiteLLM's one, and of ours the router alone and the
router with the cloud proxy.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx

from cli.system import System
from tandem.router.v1 import router_pb2, router_pb2_grpc
from tests.chaos.world import free_port
from tests.e2e.harness import question
from tests.fakes.upstream_process import UpstreamProcess

VENV = Path("build/bench/litellm-venv")
INSTALL = (
    "uv venv build/bench/litellm-venv && uv pip install --python "
    "build/bench/litellm-venv/bin/python "
    "litellm==1.110.2 fastapi uvicorn uvloop orjson apscheduler backoff pyyaml cryptography pyjwt "
    "python-multipart gunicorn websockets rich fastapi-sso email-validator pynacl mcp "
    "litellm-proxy-extras python-dotenv httptools redis semver rq hiredis "
    "restrictedpython tomlkit expression inquirerpy soundfile boto3 httpx2 granian "
    "backports-zstd polars"
)
_KEY = "sk-bench"
_START_S = 240.0
# An amount is asked for: a hard rule, so the large cloud model, with no model of ours in between.
_HARD = "Compute the effective rate of three instalments."


@dataclass
class Peers:
    """Both sides over one upstream. `calls` by name; `pids` of what stands in between."""

    system: System
    folder: Path
    calls: dict[str, Callable[[], None]] = field(default_factory=dict)
    pids: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def start(self) -> None:
        """Starts everything.

        Raises:
            RuntimeError: LiteLLM is not installed or does not start.
        """
        if not (VENV / "bin" / "litellm").exists():
            raise RuntimeError(f"LiteLLM is not installed: {INSTALL}")
        self._upstream = UpstreamProcess()
        self._upstream.default(text="Tokyo.")
        self._litellm = self._start_litellm()
        self._ours()

    def close(self) -> None:
        """Ends what this started; `system` is the caller's."""
        self._litellm.kill()
        self._litellm.wait()
        self._upstream.close()

    def _start_litellm(self) -> subprocess.Popen[bytes]:
        port, config = free_port(), self.folder / "litellm.yaml"
        config.write_text(
            "model_list:\n  - model_name: large\n    litellm_params:\n      model: openai/large\n"
            f"      api_base: {self._upstream.base_url}\n      api_key: none\n"
        )
        command = [str(VENV / "bin" / "litellm"), "--config", str(config), "--port", str(port)]
        with (self.folder / "litellm.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, "--host", "127.0.0.1"],
                env={
                    **os.environ,
                    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                    "LITELLM_MASTER_KEY": _KEY,
                },
                stdout=log,
                stderr=log,
            )
        headers = {"authorization": f"Bearer {_KEY}"}
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30)
        end = time.monotonic() + _START_S
        while not _alive(client):
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                raise RuntimeError(f"LiteLLM does not start: {_tail(self.folder / 'litellm.log')}")
            time.sleep(0.5)
        body = {"model": "large", "messages": [{"role": "user", "content": _HARD}]}
        direct = httpx.Client(timeout=30, trust_env=False)
        url = f"{self._upstream.base_url}/chat/completions"
        self.calls["upstream, direct"] = lambda: _ok(direct.post(url, json=body))
        self.calls["LiteLLM"] = lambda: _ok(client.post("/v1/chat/completions", json=body))
        self.pids["LiteLLM"] = (process.pid,)
        return process

    def _ours(self) -> None:
        environment = {"TANDEM_CLOUD__SERVER__LISTEN": "127.0.0.1:0"}
        for tier in ("SMALL", "LARGE"):
            environment[f"TANDEM_CLOUD__TIERS__{tier}__BASE_URL"] = self._upstream.base_url
        arguments = ["-m", "services.cloud_proxy.main", "--config", "config/cloud.yaml"]
        cloud = self.system.start("peer-cloud", arguments, environment)
        router = self.system.start(
            "peer-router",
            ["-m", "services.router.main"],
            {
                "TANDEM_ROUTER__SERVER__LISTEN": "127.0.0.1:0",
                "TANDEM_ROUTER__CLOUD__ADDRESS": self.system.wait_ready(cloud),
                "TANDEM_ROUTER__LEDGER_URL": f"sqlite:///{self.folder / 'peer.db'}",
                "TANDEM_ROUTER__CACHE__ENABLED": "false",
            },
        )
        channel = grpc.insecure_channel(self.system.wait_ready(router))
        stub: Any = router_pb2_grpc.RouterServiceStub(channel)
        request = question(_HARD, task_type="open_question")
        name = "router and cloud proxy"
        self.calls[name] = lambda: _good(stub.Route(request, timeout=8))
        self.pids[name] = (router.process.pid, cloud.process.pid)
        # The same calls; what the router alone spends on them.
        self.pids["of it the router"] = (router.process.pid,)


def _alive(client: httpx.Client) -> bool:
    try:
        return client.get("/health/liveliness").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _ok(response: httpx.Response) -> None:
    response.raise_for_status()


def _good(reply: router_pb2.RouteResponse) -> None:
    if reply.text != "Tokyo.":
        raise RuntimeError(f"not the upstream's answer: {reply.outcome}")


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-800:]
