"""Dockerfiles, their locks, and the compose file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from scripts.manifests import DOCKER, ROOT
from services.cloud_proxy.config import CloudSettings
from services.common.settings import Settings, load_settings
from services.edge_worker.config import EdgeSettings
from services.router.config import RouterSettings
from tests.unit.deploy.rendered import NAMES, SERVICES, containers, pods

DOCKERFILES = sorted(DOCKER.glob("*.Dockerfile"))
IMAGE_LOCKS = ["router", "edge", "edge-cuda", "cloud", "tools"]
# What compose makes of `${NAME:-default}` where NAME is not set.
DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")
PIN = re.compile(r"^([a-z0-9-]+)(?:\[[^]]*\])?==(\S+)", re.MULTILINE)


def text(path: Path) -> str:
    """A file's content."""
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_images_are_pinned_and_not_root(path: Path) -> None:
    bases = re.findall(r"^FROM (\S+)", text(path), re.MULTILINE)
    stages = re.findall(r"^FROM \S+ AS (\S+)", text(path), re.MULTILINE)
    assert {base for base in bases if base not in stages} == {"python:3.11.14-slim-bookworm"}
    final = text(path).rsplit("\nFROM ", 1)[1]
    assert "\nUSER 10001:10001\n" in final
    # JSON form: no shell stands between the process and SIGTERM.
    assert re.search(r'^ENTRYPOINT \["', final, re.MULTILINE)
    assert "RUN" not in final
    assert "--require-hashes" in text(path)


def test_each_service_has_its_own_image_with_its_own_code() -> None:
    packages = {"router": "router", "edge": "edge_worker", "cloud": "cloud_proxy"}
    for name, package in packages.items():
        copied = re.findall(r"^COPY services/(\w+)", text(DOCKER / f"{name}.Dockerfile"), re.M)
        assert copied == ["__init__", "common", package]


def test_every_image_of_ours_can_be_built() -> None:
    built = set(re.findall(r"-t (tandem-[a-z-]+):", "".join(map(text, DOCKERFILES))))
    used = {
        container["image"].partition(":")[0]
        for target in NAMES
        for pod in pods(target).values()
        for container in containers(pod)
    }
    assert {image for image in used if image.startswith("tandem-")} == built


@pytest.mark.parametrize("name", IMAGE_LOCKS)
def test_images_hold_the_versions_that_the_tests_ran_with(name: str) -> None:
    tested: dict[str, set[str]] = {}
    for package, version in PIN.findall(text(ROOT / "requirements" / "dev.lock")):
        tested.setdefault(package, set()).add(version)
    shipped = PIN.findall(text(ROOT / "requirements" / f"{name}.lock"))
    assert shipped
    assert [pin for pin in shipped if pin[0] in tested and pin[1] not in tested[pin[0]]] == []
    # Libraries of NVIDIA come with the GPU image alone.
    extra = {pin[0] for pin in shipped if pin[0] not in tested}
    assert all(package.startswith("nvidia-") for package in extra)


def test_compose_gives_settings_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services = yaml.safe_load(text(DOCKER / "compose.yaml"))["services"]
    kinds: dict[str, type[Settings]] = {
        "router": RouterSettings,
        "edge": EdgeSettings,
        "cloud": CloudSettings,
    }
    for name, kind in kinds.items():
        prefix = f"TANDEM_{name.upper()}__"
        for variable, value in services[name]["environment"].items():
            assert variable.startswith(prefix)
            monkeypatch.setenv(variable, DEFAULT.sub(r"\1", str(value)))
        settings = load_settings(kind, ROOT / "config" / f"{name}.yaml", prefix[:-2])
        assert isinstance(settings, RouterSettings | EdgeSettings | CloudSettings)
        assert settings.server.listen == f"0.0.0.0:{SERVICES[name]}"


def test_compose_runs_no_one_as_root_and_opens_only_loopback() -> None:
    services = yaml.safe_load(text(DOCKER / "compose.yaml"))["services"]
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
