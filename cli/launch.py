"""The processes of a system in their order: stand-in, edge worker, cloud proxy, router."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cli.system import Child, StartFailed, System
from services.common.embedding.files import DEFAULT_DIR
from services.common.settings import read_yaml

MODEL = "smollm2-135m-instruct"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """What `tandem up` was told.

    Attributes:
        config_dir: Folder of the YAML files.
        models_root: Folder that `tandem models build` filled.
        router_port, edge_port, cloud_port: 0 takes a free one.
        bodies_file: Where the stand-in writes request bodies; None: nowhere.
        ledger_url: Of the router's ledger; empty: as its settings say.
    """

    config_dir: Path
    models_root: Path
    router_port: int = 50051
    edge_port: int = 50052
    cloud_port: int = 50053
    bodies_file: Path | None = None
    ledger_url: str = ""


def wants_standin(config_dir: Path) -> list[str]:
    """The tiers of `cloud.yaml` that a stand-in serves."""
    tiers = read_yaml(config_dir / "cloud.yaml").get("tiers", {})
    return [name for name, tier in tiers.items() if tier.get("standin")]


def check_models(options: LaunchOptions, standin: bool) -> None:
    """Raises StartFailed where a model that is needed is not built yet."""
    for recipe in ("q8", "fp32") if standin else ("q8",):
        if not (options.models_root / MODEL / recipe / "manifest.json").exists():
            raise StartFailed(
                f"the model is not built in {options.models_root}. "
                f"Build it with: tandem models build --recipe {recipe}"
            )


def launch(system: System, options: LaunchOptions, say: Say) -> str:
    """Starts everything and waits until it is ready; returns the router's address.

    The three services start side by side: none needs another to be up.

    Raises:
        StartFailed: A process did not become ready.
    """
    tiers = wants_standin(options.config_dir)
    check_models(options, bool(tiers))
    upstream: dict[str, str] = {}
    if tiers:
        child = _start_standin(system, options)
        address = _ready(system, child, say, "stand-in upstream (no real provider is set)")
        for tier in tiers:
            upstream[f"TANDEM_CLOUD__TIERS__{tier.upper()}__BASE_URL"] = f"http://{address}/v1"
    edge = start_edge(system, options)
    cloud = _start_service(
        system, options, "cloud", "cloud_proxy", options.cloud_port, "TANDEM_CLOUD", upstream
    )
    cloud_address = _ready(system, cloud, say, "cloud proxy")
    edge_address = _ready(system, edge, say, "edge worker")
    links = {
        "TANDEM_ROUTER__EDGE__ADDRESS": edge_address,
        "TANDEM_ROUTER__CLOUD__ADDRESS": cloud_address,
        "TANDEM_ROUTER__POLICY_FILE": str(options.config_dir / "policy.yaml"),
        "TANDEM_ROUTER__THRESHOLDS_FILE": str(options.config_dir / "thresholds.yaml"),
        "TANDEM_ROUTER__TENANTS_FILE": str(options.config_dir / "tenants.yaml"),
        "TANDEM_ROUTER__EMBEDDER_DIR": str(options.models_root / DEFAULT_DIR.name),
    }
    if options.ledger_url:
        links["TANDEM_ROUTER__LEDGER_URL"] = options.ledger_url
    router = _start_service(
        system, options, "router", "router", options.router_port, "TANDEM_ROUTER", links
    )
    return _ready(system, router, say, "router")


def write_addresses(system: System, file: Path) -> None:
    """Leaves the addresses where `tandem ask` looks for them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    addresses = {name: child.address for name, child in system.children.items()}
    file.write_text(json.dumps(addresses), encoding="utf-8")


def _start_standin(system: System, options: LaunchOptions) -> Child:
    model_dir = options.models_root / MODEL / "fp32"
    arguments = ["-m", "cli.standin.main", "--model-dir", str(model_dir), "--listen", "127.0.0.1:0"]
    if options.bodies_file is not None:
        options.bodies_file.unlink(missing_ok=True)
        arguments += ["--log-bodies", str(options.bodies_file)]
    return system.start("standin", arguments, {})


def start_edge(system: System, options: LaunchOptions) -> Child:
    model_dir = options.models_root / MODEL / "q8"
    return _start_service(
        system,
        options,
        "edge",
        "edge_worker",
        options.edge_port,
        "TANDEM_EDGE",
        {"TANDEM_EDGE__RUNTIME__MODEL_DIR": str(model_dir)},
    )


def _start_service(
    system: System,
    options: LaunchOptions,
    name: str,
    package: str,
    port: int,
    prefix: str,
    environment: dict[str, str],
) -> Child:
    config = options.config_dir / f"{name}.yaml"
    return system.start(
        name,
        ["-m", f"services.{package}.main", "--config", str(config)],
        {f"{prefix}__SERVER__LISTEN": f"127.0.0.1:{port}", **environment},
    )


def _ready(system: System, child: Child, say: Say, what: str) -> str:
    address = system.wait_ready(child)
    say(f"{what} ready at {address}")
    return address
