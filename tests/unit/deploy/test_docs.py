"""docs/deploy.md says what is there."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from scripts.manifests import K8S, ROOT
from services.common.auth.keys import hash_key, make_key
from services.common.telemetry import names
from services.router.policy_store import load_policy
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


def test_its_task_type_is_a_policy(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(capabilities:.*?)```", TEXT, re.DOTALL)
    policy = yaml.safe_load((ROOT / "config" / "policy.yaml").read_text(encoding="utf-8"))
    policy["capabilities"] |= yaml.safe_load(block)["capabilities"]
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy, allow_unicode=True), encoding="utf-8")
    assert load_policy(file).policy.capability("ticket_triage").max_output_tokens == 50


def test_its_span_tree_has_the_names_of_the_code() -> None:
    spans = {value for name, value in vars(names).items() if name.startswith("SPAN_")}
    told = set(re.findall(r"─ (tandem\.[\w.]+)", TEXT))
    assert told == spans


def test_links_between_the_pages_lead_somewhere() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("README*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_collectors_example_goes_by_an_attribute_of_ours() -> None:
    text = (ROOT / "deploy" / "otel" / "collector.yaml").read_text(encoding="utf-8")
    policies = yaml.safe_load(text)["processors"]["tail_sampling"]["policies"]
    keys = [each["string_attribute"]["key"] for each in policies if "string_attribute" in each]
    assert keys == [names.LEVEL]
