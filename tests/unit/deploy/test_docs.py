"""docs/deploy.md says what is there."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.manifests import K8S, ROOT
from services.common.auth.keys import hash_key, make_key
from services.router.tenants import watch_tenants
from tests.unit.deploy.rendered import NAMES, pods

TEXT = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")


def test_every_overlay_and_component_is_told() -> None:
    folders = [*(K8S / "overlays").iterdir(), *(K8S / "components").iterdir()]
    assert [path.name for path in folders if f"| `{path.name}` |" not in TEXT] == []


def test_every_secret_that_is_mounted_is_told() -> None:
    used = {
        volume["secret"]["secretName"]
        for target in NAMES
        for pod in pods(target).values()
        for volume in pod["spec"]["volumes"]
        if "secret" in volume
    }
    assert used
    assert [name for name in used if name not in TEXT] == []


def test_the_files_that_it_names_exist() -> None:
    named = set(re.findall(r"(?<![\w/])(?:deploy|config)/[\w./-]*\w", TEXT))
    named -= {path for path in named if path.startswith("config/kustomization")}
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_its_tenants_are_taken_on_any_address(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(tenants:.*?)```", TEXT, re.DOTALL)
    hashed = hash_key(make_key("acme-ci"))
    file = tmp_path / "tenants.yaml"
    file.write_text(block.replace("hmac-sha256$<salt>$<hash>", hashed), encoding="utf-8")
    tenants = watch_tenants(file, loopback=False).get()
    assert [tenant.name for tenant in tenants.tenants] == ["acme"]
    assert tenants.anonymous == ""
