"""What every pod keeps to."""

from __future__ import annotations

import re

import pytest

from tests.unit.deploy.rendered import (
    NAMES,
    SERVICES,
    containers,
    deployments,
    environment,
    objects,
    of_kind,
    pods,
)


@pytest.mark.parametrize("target", NAMES)
def test_the_policy_keeps_its_name_and_is_mounted_as_a_folder(target: str) -> None:
    assert "tandem-policy" in of_kind(target, "ConfigMap")
    pod = deployments(target)["router"]["spec"]["template"]["spec"]
    (volume,) = (v for v in pod["volumes"] if v.get("configMap", {}).get("name") == "tandem-policy")
    mounts = [m for m in pod["containers"][0]["volumeMounts"] if m["name"] == volume["name"]]
    file = environment(target, "router")["TANDEM_ROUTER__POLICY_FILE"]
    assert [f"{mount['mountPath']}/policy.yaml" for mount in mounts] == [file]


@pytest.mark.parametrize("target", NAMES)
def test_a_changed_setting_restarts_what_reads_it(target: str) -> None:
    others = of_kind(target, "ConfigMap").keys() - {"tandem-policy"}
    assert [name for name in others if not re.search(r"-[0-9a-z]{10}$", name)] == []
    used = {
        source["configMapRef"]["name"]
        for pod in pods(target).values()
        for container in containers(pod)
        for source in container.get("envFrom", [])
    } | {
        volume["configMap"]["name"]
        for pod in pods(target).values()
        for volume in pod["spec"]["volumes"]
        if "configMap" in volume
    }
    assert used == others | {"tandem-policy"}


@pytest.mark.parametrize("target", NAMES)
def test_nothing_is_mounted_in_a_way_that_never_changes(target: str) -> None:
    for pod in pods(target).values():
        for container in containers(pod):
            assert [m for m in container["volumeMounts"] if "subPath" in m] == []


@pytest.mark.parametrize("target", NAMES)
def test_health_is_asked_by_grpc(target: str) -> None:
    for name, manifest in deployments(target).items():
        container = manifest["spec"]["template"]["spec"]["containers"][0]
        for probe, service in (("readinessProbe", "readiness"), ("livenessProbe", "liveness")):
            assert container[probe]["grpc"] == {"port": SERVICES[name], "service": service}
        startup = container["startupProbe"]
        # Ready is warm: a model that is still loading is not killed by liveness.
        assert startup["grpc"]["service"] == ("readiness" if name == "edge" else "liveness")
        assert startup["failureThreshold"] * startup["periodSeconds"] >= 60


@pytest.mark.parametrize("target", NAMES)
def test_pods_hold_no_privilege(target: str) -> None:
    for pod in pods(target).values():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(pod):
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            for bound in ("requests", "limits"):
                assert "memory" in container["resources"][bound]
            image, _, tag = container["image"].partition(":")
            assert image and re.match(r"\d+\.\d+", tag), container["image"]


@pytest.mark.parametrize("target", NAMES)
def test_secrets_are_mounted_and_never_made_here(target: str) -> None:
    assert not of_kind(target, "Secret")
    for pod in pods(target).values():
        for container in containers(pod):
            assert [e for e in container.get("env", []) if "valueFrom" in e] == []
            assert [s for s in container.get("envFrom", []) if "secretRef" in s] == []


@pytest.mark.parametrize("target", NAMES)
def test_callers_can_spread_their_calls(target: str) -> None:
    services = of_kind(target, "Service")
    for name, manifest in deployments(target).items():
        spec = services[f"tandem-{name}"]["spec"]
        assert spec["clusterIP"] == "None"
        assert [port["port"] for port in spec["ports"]] == [SERVICES[name]]
        labels = manifest["spec"]["template"]["metadata"]["labels"]
        assert spec["selector"].items() <= labels.items()
        spread = manifest["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert {one["topologyKey"] for one in spread} >= {"kubernetes.io/hostname"}


@pytest.mark.parametrize("target", NAMES)
def test_all_traffic_is_denied_first(target: str) -> None:
    policies = of_kind(target, "NetworkPolicy")
    assert policies["tandem-default-deny"]["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }
    running = pods(target).keys()
    for manifest in policies.values():
        named = manifest["spec"]["podSelector"].get("matchLabels", {})
        assert named.get("app.kubernetes.io/name", "tandem-router") in running
    # Nothing that sees a prompt in full, save the proxy behind its redaction, leaves the cluster.
    outward = [
        name
        for name, manifest in policies.items()
        if any("ipBlock" in to for rule in manifest["spec"].get("egress", []) for to in rule["to"])
    ]
    assert outward == (["tandem-router-cloud"] if target == "edge" else ["tandem-cloud"])


@pytest.mark.parametrize("target", NAMES)
def test_all_objects_are_in_one_namespace(target: str) -> None:
    for manifest in objects(target):
        if manifest["kind"] != "Namespace":
            assert manifest["metadata"]["namespace"] == "tandem"
        assert manifest["metadata"]["labels"]["app.kubernetes.io/part-of"] == "tandem"
