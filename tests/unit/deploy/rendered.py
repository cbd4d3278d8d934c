"""The built overlays and components, for the tests here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from scripts.manifests import Manifest, build, parse, targets

SERVICES = {"router": 50051, "edge": 50052, "cloud": 50053}
NAMES = sorted(targets())


@cache
def objects(target: str) -> tuple[Manifest, ...]:
    """All objects of an overlay, or of the one that carries a component."""
    return tuple(parse(build(targets()[target])))


def of_kind(target: str, *kinds: str) -> dict[str, Manifest]:
    """Objects by name."""
    return {
        manifest["metadata"]["name"]: manifest
        for manifest in objects(target)
        if manifest["kind"] in kinds
    }


def deployments(target: str) -> dict[str, Manifest]:
    """Our own services that an overlay runs, by short name."""
    found = of_kind(target, "Deployment")
    return {name: found[f"tandem-{name}"] for name in SERVICES if f"tandem-{name}" in found}


def pods(target: str) -> dict[str, Manifest]:
    """Pod templates of everything that runs, by name."""
    return {
        name: manifest["spec"]["template"]
        for name, manifest in of_kind(target, "Deployment", "StatefulSet").items()
    }


def containers(pod: Manifest) -> Iterator[Manifest]:
    """Containers of a pod, those that run first included."""
    yield from pod["spec"].get("initContainers", [])
    yield from pod["spec"]["containers"]


def config_map(target: str, prefix: str) -> dict[str, str]:
    """The content of the one ConfigMap whose name begins so."""
    (found,) = (
        manifest["data"]
        for name, manifest in of_kind(target, "ConfigMap").items()
        if name.startswith(prefix)
    )
    return dict(found)


def environment(target: str, service: str) -> dict[str, str]:
    """The variables that a service is given."""
    return config_map(target, f"tandem-{service}-env-")


def autoscalers(target: str) -> list[tuple[str, int]]:
    """Deployment and largest number of each HPA and ScaledObject."""
    found: list[tuple[str, int]] = []
    for manifest in of_kind(target, "HorizontalPodAutoscaler", "ScaledObject").values():
        spec: dict[str, Any] = manifest["spec"]
        most: int = spec["maxReplicas" if "maxReplicas" in spec else "maxReplicaCount"]
        found.append((spec["scaleTargetRef"]["name"], most))
    return found
