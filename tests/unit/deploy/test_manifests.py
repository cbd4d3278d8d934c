"""The checks of `make manifests` find what they are there for."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.manifests import VERSIONS, Accepted, Manifest, read_accepted, schema_findings


def deployment(**more: object) -> Manifest:
    """A Deployment that is valid."""
    labels = {"a": "b"}
    pod = {"containers": [{"name": "c", "image": "c:1"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "one"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            **more,
        },
    }


def nothing() -> Accepted:
    """Accepts nothing."""
    return Accepted({}, [])


def test_a_valid_object_passes() -> None:
    assert schema_findings("x", [deployment()], nothing()) == []


def test_a_field_that_does_not_exist_is_found_on_every_version() -> None:
    found = schema_findings("x", [deployment(replica=2)], nothing())
    assert len(found) == len(VERSIONS)
    assert "replica" in found[0]


@pytest.mark.parametrize(
    ("api", "kind"),
    [("autoscaling/v2beta2", "HorizontalPodAutoscaler"), ("example.com/v1", "Deployment")],
)
def test_a_kind_without_a_schema_is_found(api: str, kind: str) -> None:
    manifest = {**deployment(), "apiVersion": api, "kind": kind}
    assert len(schema_findings("x", [manifest], nothing())) == len(VERSIONS)
    accepted = Accepted({(api, kind): "why"}, [])
    assert schema_findings("x", [manifest], accepted) == []
    assert list(accepted.stale()) == []


def test_what_nothing_needs_is_told() -> None:
    accepted = Accepted({}, [{"check": "CKV_1", "resource": "Pod.*", "reason": "why"}])
    assert not accepted.check("CKV_1", "Deployment.a")
    assert not accepted.check("CKV_2", "Pod.a")
    assert len(list(accepted.stale())) == 1
    assert accepted.check("CKV_1", "Pod.a")
    assert list(accepted.stale()) == []


def test_every_accepted_finding_has_a_reason(tmp_path: Path) -> None:
    read_accepted()
    bad = tmp_path / "accepted.yaml"
    bad.write_text("kinds: []\nchecks: [{check: A, resource: B, reason: ' '}]\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="needs a reason"):
        read_accepted(bad)
