"""The services take what the manifests give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cloud_proxy.config import CloudSettings
from services.common.settings import Settings, load_settings
from services.edge_worker.config import EdgeSettings
from services.router.config import RouterSettings
from services.router.tenants import Tenant
from tests.unit.deploy.rendered import NAMES, SERVICES, config_map, deployments, environment

KINDS: dict[str, type[Settings]] = {
    "router": RouterSettings,
    "edge": EdgeSettings,
    "cloud": CloudSettings,
}
BY_SERVICE = [(target, service) for target in NAMES for service in deployments(target)]


def loaded(
    target: str, service: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> RouterSettings | EdgeSettings | CloudSettings:
    """The settings of a service as the pod would read them."""
    file = folder / f"{service}.yaml"
    file.write_text(config_map(target, f"tandem-{service}-config-")[file.name], encoding="utf-8")
    for name, value in environment(target, service).items():
        monkeypatch.setenv(name, value)
    settings = load_settings(KINDS[service], file, f"TANDEM_{service.upper()}")
    assert isinstance(settings, RouterSettings | EdgeSettings | CloudSettings)
    return settings


@pytest.mark.parametrize(("target", "service"), BY_SERVICE)
def test_every_variable_is_a_setting(
    target: str, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"TANDEM_{service.upper()}__"
    ours = [name for name in environment(target, service) if name.startswith("TANDEM")]
    # Another prefix would be passed over in silence; an unknown name under it is an error.
    assert [name for name in ours if not name.startswith(prefix)] == []
    settings = loaded(target, service, tmp_path, monkeypatch)
    assert settings.server.listen == f"0.0.0.0:{SERVICES[service]}"


@pytest.mark.parametrize(("target", "service"), BY_SERVICE)
def test_a_call_that_was_taken_may_end(
    target: str, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest_ms = max(
        Tenant(name="any").max_deadline_ms,
        EdgeSettings().limits.max_budget_ms,
        CloudSettings.model_fields["budget"].get_default().max_ms,
    )
    server = loaded(target, service, tmp_path, monkeypatch).server
    assert server.drain_ms > longest_ms
    assert server.max_connection_age_grace_ms > longest_ms
    pod = deployments(target)[service]["spec"]["template"]["spec"]
    # gRPC ends a connection up to a tenth late; whoever still calls then would fail.
    assert server.leave_ms > 1.1 * server.max_connection_age_ms
    # The flush of telemetry takes up to 25 s where the collector is down.
    stopping_s = (server.leave_ms + server.drain_ms) / 1000 + 25
    assert pod["terminationGracePeriodSeconds"] >= stopping_s


@pytest.mark.parametrize(("target", "service"), BY_SERVICE)
def test_files_that_settings_name_are_mounted(target: str, service: str) -> None:
    container = deployments(target)[service]["spec"]["template"]["spec"]["containers"][0]
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    paths = [
        value.removeprefix("sqlite:///")
        for value in (*environment(target, service).values(), *container["args"])
        if value.removeprefix("sqlite:///").startswith("/")
    ]
    assert paths
    assert [
        path for path in paths if not any(path.startswith(f"{mount}/") for mount in mounts)
    ] == []


def test_threads_of_the_edge_follow_its_cpu_limit() -> None:
    # A part of a CPU would be rounded down to fewer threads than are paid for.
    for target in NAMES:
        resources = deployments(target)["edge"]["spec"]["template"]["spec"]["containers"][0][
            "resources"
        ]
        assert int(resources["limits"]["cpu"]) == int(resources["requests"]["cpu"]) >= 1
        assert "TANDEM_EDGE__RUNTIME__THREADS" not in environment(target, "edge")
