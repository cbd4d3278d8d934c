"""Ledger, tenants, cloud latency and policy file."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path

import pytest

from services.common.errors import ConfigInvalid, Unauthenticated
from services.common.settings import validate
from services.common.vocabulary import Target
from services.router.app import RouterApp
from services.router.config import RouterSettings
from services.router.ledger import JsonLinesLedger
from services.router.policy.config import LatencyPolicy
from services.router.policy_store import load_policy
from services.router.state.cloud_latency import CloudLatency
from services.router.tenants import RouterAdmission, Tenants

KEY = "a-random-key"
DIGEST = hashlib.sha256(KEY.encode()).hexdigest()


async def test_rows_reach_the_file_in_order_and_stop_empties_the_queue(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "ledger.jsonl"
    ledger = JsonLinesLedger(file)
    ledger.start()
    for number in range(1_200):
        ledger.append({"n": number})
    await ledger.stop()
    rows = [json.loads(line)["n"] for line in file.read_text().splitlines()]
    assert rows == list(range(1_200))


async def test_a_disk_that_fails_costs_no_request(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ledger = JsonLinesLedger(tmp_path / "file" / "ledger.jsonl")
    ledger.start()
    ledger.append({"n": 1})
    await asyncio.sleep(0)
    await asyncio.wait_for(ledger.stop(), 5)


def test_p90_needs_samples_and_forgets_old_ones() -> None:
    latency, prior = CloudLatency(), LatencyPolicy()
    for number in range(4):
        latency.took(Target.CLOUD_SMALL, 100.0 * (number + 1), now=0.0)
    assert latency.facts(prior, 1.0)[Target.CLOUD_SMALL].eta_ms == prior.cloud_small_prior_ms
    for number in range(4, 11):
        latency.took(Target.CLOUD_SMALL, 100.0 * (number + 1), now=0.0)
    assert latency.facts(prior, 1.0)[Target.CLOUD_SMALL].eta_ms == 1_000.0
    assert latency.facts(prior, 301.0)[Target.CLOUD_SMALL].eta_ms == prior.cloud_small_prior_ms


def tenants(**top: object) -> Tenants:
    entry = {"name": "acme", "key_sha256": [DIGEST]}
    return validate(Tenants, {"tenants": [entry], **top}, "tenants.yaml")


def test_a_key_finds_its_tenant() -> None:
    admission = RouterAdmission(tenants())
    assert admission.authenticate("m", {"authorization": f"Bearer {KEY}"}).tenant == "acme"


@pytest.mark.parametrize("value", ["", KEY, "Bearer ", "Bearer other", f"Basic {KEY}", "Bearer é"])
def test_other_credentials_are_refused(value: str) -> None:
    with pytest.raises(Unauthenticated):
        RouterAdmission(tenants()).authenticate("m", {"authorization": value})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"anonymous": "nobody"}, "anonymous"),
        ({"tenants": [{"name": "A B"}]}, "name"),
        ({"tenants": [{"name": "a", "key_sha256": ["short"]}]}, "SHA-256"),
        ({"tenants": [{"name": "a", "targets": ["CACHE"]}]}, "EDGE"),
        ({"tenants": [{"name": "a"}, {"name": "a"}]}, "differ"),
        ({"tenants": [{"name": "a", "colour": 1}]}, "colour"),
    ],
)
def test_bad_tenant_files_say_what_is_wrong(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigInvalid, match=words):
        tenants(**changes)


def test_anonymous_calls_are_for_loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_SERVICE_SECRET", "s" * 40)
    open_to_all = validate(RouterSettings, {"server": {"listen": "0.0.0.0:0"}}, "router.yaml")
    with pytest.raises(ConfigInvalid, match="loopback"):
        RouterApp(open_to_all)


def test_the_version_of_a_policy_follows_its_content(tmp_path: Path) -> None:
    text = Path("config/policy.yaml").read_text(encoding="utf-8")
    (tmp_path / "same.yaml").write_text("# another comment\n" + text)
    (tmp_path / "other.yaml").write_text(text.replace("commit_tokens: 120", "commit_tokens: 60"))
    shipped = load_policy(Path("config/policy.yaml")).version
    assert load_policy(tmp_path / "same.yaml").version == shipped
    assert load_policy(tmp_path / "other.yaml").version != shipped


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("capabilities: {}", "default_task"),
        ("capabilities: {a: {edge: maybe}}", "edge"),
        ("caps: {l0: 2}", "l0"),
        ("- a list", "mapping"),
        ("a: [", "YAML"),
        ("stream_mode: later", "stream_mode"),
    ],
)
def test_bad_policy_files_say_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(ConfigInvalid, match=words):
        load_policy(file)
