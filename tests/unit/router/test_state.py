"""Tenants, cloud latency and policy file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from services.common.auth.keys import hash_key, make_key
from services.common.errors import ConfigInvalid, Unauthenticated
from services.common.settings import validate
from services.common.vocabulary import Target
from services.router.app import RouterApp
from services.router.config import RouterSettings
from services.router.policy.config import LatencyPolicy
from services.router.policy_store import load_policy
from services.router.state.cloud_latency import CloudLatency
from services.router.state.lengths import OutputLengths
from services.router.tenants import RouterAdmission, Tenants, watch_tenants

KEY = make_key("acme-ci")
API_KEY = {"id": "acme-ci", "tenant": "acme", "hashes": [hash_key(KEY)]}


def test_p90_needs_samples_and_forgets_old_ones() -> None:
    latency, prior = CloudLatency(), LatencyPolicy()
    for number in range(4):
        latency.took(Target.CLOUD_SMALL, 100.0 * (number + 1), now=0.0)
    assert latency.facts(prior, 1.0)[Target.CLOUD_SMALL].eta_ms == prior.cloud_small_prior_ms
    for number in range(4, 11):
        latency.took(Target.CLOUD_SMALL, 100.0 * (number + 1), now=0.0)
    assert latency.facts(prior, 1.0)[Target.CLOUD_SMALL].eta_ms == 1_000.0
    assert latency.facts(prior, 301.0)[Target.CLOUD_SMALL].eta_ms == prior.cloud_small_prior_ms


def slow_for_a_while() -> CloudLatency:
    latency = CloudLatency()
    for _ in range(20):
        latency.took(Target.CLOUD_SMALL, 9_000.0, now=0.0)
    return latency


def probe(latency: CloudLatency, *durations_ms: float) -> float:
    for duration_ms in durations_ms:
        latency.took(Target.CLOUD_SMALL, duration_ms, now=1.0)
        latency.probed(Target.CLOUD_SMALL, duration_ms, now=1.0)
    return latency.facts(LatencyPolicy(), 1.0)[Target.CLOUD_SMALL].eta_ms


def test_three_quick_probes_end_a_slow_spell() -> None:
    latency = slow_for_a_while()
    assert probe(latency, 500.0, 500.0) == 9_000.0
    assert probe(latency, 500.0) == LatencyPolicy().cloud_small_prior_ms


def test_a_slow_probe_between_quick_ones_keeps_the_estimate() -> None:
    assert probe(slow_for_a_while(), 500.0, 500.0, 8_000.0, 500.0, 500.0) == 9_000.0


def test_lengths_are_the_records_once_there_are_enough() -> None:
    lengths = OutputLengths()
    for number in range(19):
        lengths.took("code", 10 * number)
    lengths.took("code", 0)
    assert lengths.usual("code") is None
    lengths.took("code", 190)
    lengths.took("code", 200)
    assert lengths.usual("code") == 150
    assert lengths.usual("open_question") is None


def test_lengths_are_read_back_from_the_ledgers_rows() -> None:
    def row(outcome: str) -> dict[str, object]:
        return {"task_type": "code", "attempts": [{"outcome": outcome, "output_tokens": 40}]}

    lengths = OutputLengths()
    lengths.seed([row("ACCEPTED")] * 19 + [row("TIMED_OUT")] * 5)
    assert lengths.usual("code") is None
    lengths.seed([row("ACCEPTED")])
    assert lengths.usual("code") == 40


def tenants(**top: object) -> Tenants:
    content = {"tenants": [{"name": "acme"}], "keys": [API_KEY], **top}
    return validate(Tenants, content, "tenants.yaml")


def admit(folder: Path, **top: object) -> RouterAdmission:
    file = folder / "tenants.yaml"
    file.write_text(yaml.safe_dump(tenants(**top).model_dump(mode="json")))
    return RouterAdmission(watch_tenants(file, loopback=True))


def test_a_key_finds_its_tenant(tmp_path: Path) -> None:
    admission = admit(tmp_path)
    assert admission.authenticate("m", {"authorization": f"Bearer {KEY}"}).tenant == "acme"


@pytest.mark.parametrize("value", ["", KEY, "Bearer ", "Bearer other", f"Basic {KEY}", "Bearer é"])
def test_other_credentials_are_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(Unauthenticated):
        admit(tmp_path).authenticate("m", {"authorization": value})


def test_the_anonymous_tenant_and_a_tenant_that_left(tmp_path: Path) -> None:
    admission = admit(tmp_path, anonymous="acme")
    principal = admission.authenticate("m", {})
    assert (principal.tenant, principal.key) == ("acme", "")
    assert admission.limits(principal).default_ms == 8_000
    with pytest.raises(Unauthenticated):
        admission.tenant("gone")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"anonymous": "nobody"}, "anonymous"),
        ({"tenants": [{"name": "A B"}]}, "name"),
        ({"keys": [{**API_KEY, "hashes": ["short"]}]}, "hmac-sha256"),
        ({"keys": [{**API_KEY, "hashes": []}]}, "hashes"),
        ({"keys": [{**API_KEY, "tenant": "other"}]}, "tenant"),
        ({"keys": [API_KEY, API_KEY]}, "differ"),
        ({"keys": [{**API_KEY, "roles": ["king"]}]}, "roles"),
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
