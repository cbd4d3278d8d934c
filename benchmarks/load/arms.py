"""The four arms, as settings and policy files of the real system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.load.mix import LABELS
from cli.system import System
from services.common.settings import read_yaml
from tests.fakes.upstream_process import UpstreamProcess

EDGE_MODEL = "models/smollm2-135m-instruct/q8"
# The simulated upstream: time to the first token by chance in this range, then a pace.
TTFT_MS, CHUNK_MS, WORDS = (400, 800), 15, 60
PRICES = "example-small 0.15/0.60, example-large 2.50/10.00 US dollars per million tokens in/out"


@dataclass(frozen=True, slots=True)
class Arm:
    """What differs from the shipped configuration."""

    name: str
    targets: tuple[str, ...]
    cache: bool = False
    policy: tuple[tuple[str, Any], ...] = ()


# Without degradation: nothing leaves a slow target before it has failed, and the edge does not
# stand in for the cloud.
_STIFF: tuple[tuple[str, Any], ...] = (
    ("on_large_timeout", "next_level"),
    ("latency", {"edge_share": 1.0, "recheck_share": 1.0}),
)
_ALL = ("EDGE", "CLOUD_SMALL", "CLOUD_LARGE")
ARMS = (
    Arm("cloud only (large)", ("CLOUD_LARGE",)),
    Arm("hybrid, no cache, no degradation", _ALL, policy=_STIFF),
    Arm("hybrid, cache and degradation", _ALL, cache=True),
    Arm("edge only", ("EDGE",)),
)


@contextmanager
def running(arm: Arm, run_dir: Path, edge: str) -> Iterator[tuple[System, str, UpstreamProcess]]:
    """The system of an arm; gives its processes, the router's address and the upstream."""
    run_dir.mkdir(parents=True)
    system = System(run_dir)
    with UpstreamProcess() as upstream:
        upstream.default(
            text="word " * WORDS,
            ttft_ms=TTFT_MS[0],
            ttft_spread_ms=TTFT_MS[1] - TTFT_MS[0],
            chunk_ms=CHUNK_MS,
            # A real model would keep to the labels; this one does so where it is asked to.
            when=[["returns", LABELS[0]]],
        )
        try:
            yield system, _start(system, arm, upstream, edge), upstream
        finally:
            system.stop()


def _start(system: System, arm: Arm, upstream: UpstreamProcess, edge: str) -> str:
    modules = {"real": "services.edge_worker.main", "burn": "tests.fakes.edge_main"}
    worker = system.start(
        "edge",
        ["-m", modules[edge], "--config", "config/edge.yaml"],
        {
            "TANDEM_EDGE__SERVER__LISTEN": "127.0.0.1:0",
            "TANDEM_EDGE__RUNTIME__MODEL_DIR": EDGE_MODEL,
        },
    )
    cloud_environment = {"TANDEM_CLOUD__SERVER__LISTEN": "127.0.0.1:0"}
    for tier in ("SMALL", "LARGE"):
        cloud_environment[f"TANDEM_CLOUD__TIERS__{tier}__BASE_URL"] = upstream.base_url
    cloud = system.start(
        "cloud",
        ["-m", "services.cloud_proxy.main", "--config", "config/cloud.yaml"],
        cloud_environment,
    )
    edge_address, cloud_address = system.wait_ready(worker), system.wait_ready(cloud)
    router = system.start(
        "router",
        ["-m", "services.router.main"],
        {
            "TANDEM_ROUTER__SERVER__LISTEN": "127.0.0.1:0",
            "TANDEM_ROUTER__EDGE__ADDRESS": edge_address,
            "TANDEM_ROUTER__CLOUD__ADDRESS": cloud_address,
            "TANDEM_ROUTER__LEDGER_URL": f"sqlite:///{system.run_dir.absolute() / 'ledger.db'}",
            "TANDEM_ROUTER__CACHE__ENABLED": str(arm.cache).lower(),
            "TANDEM_ROUTER__POLICY_FILE": str(_policy(arm, system.run_dir)),
            "TANDEM_ROUTER__TENANTS_FILE": str(_tenants(arm, system.run_dir)),
        },
    )
    return system.wait_ready(router)


def _policy(arm: Arm, folder: Path) -> Path:
    data = read_yaml(Path("config/policy.yaml"))
    for name, value in arm.policy:
        data[name] = data[name] | value if isinstance(value, dict) else value
    return _written(folder / "policy.yaml", data)


def _tenants(arm: Arm, folder: Path) -> Path:
    data = read_yaml(Path("config/tenants.yaml"))
    data["tenants"][0]["targets"] = list(arm.targets)
    return _written(folder / "tenants.yaml", data)


def _written(file: Path, data: dict[str, Any]) -> Path:
    file.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    return file


def rss_mb(system: System) -> dict[str, int]:
    """Resident memory of each service now."""
    page = os.sysconf("SC_PAGE_SIZE")
    return {
        name: int(Path(f"/proc/{child.process.pid}/statm").read_text().split()[1]) * page // 2**20
        for name, child in system.children.items()
    }
