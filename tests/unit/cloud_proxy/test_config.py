"""Settings that are refused, and the file that is shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.cloud_proxy.app import CloudApp
from services.cloud_proxy.config import ENV_PREFIX, CloudSettings, TierSettings
from services.cloud_proxy.main import main
from services.common.errors import ConfigInvalid
from services.common.settings import load_settings, validate

SHIPPED = Path(__file__).parents[3] / "config" / "cloud.yaml"
GOOD = {"base_url": "https://api.example.com/v1", "model": "m"}
SECRET = "unit-secret-unit-secret-unit-secret"


def settings(**changes: Any) -> CloudSettings:
    tiers = {"small": {**GOOD, **changes}, "large": GOOD}
    return CloudSettings.model_validate({"tiers": tiers})


def test_the_shipped_file_is_valid() -> None:
    shipped = load_settings(CloudSettings, SHIPPED, ENV_PREFIX)
    assert shipped.pii == "redact"
    assert shipped.tiers.small.standin
    assert shipped.tiers.large.standin


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "http://api.example.com/v1"},
        {"base_url": "https://user:pass@api.example.com/v1"},
        {"base_url": "file:///etc/passwd"},
        {"base_url": "api.example.com"},
        {"stall_ms": 0},
        {"retry": "always"},
        {"model": ""},
        {"unknown": 1},
        {"input_usd_per_million": -1},
    ],
)
def test_bad_tiers(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid):
        validate(TierSettings, {**GOOD, **changes}, "test")


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "http://127.0.0.1:8000/v1"},
        {"base_url": "http://[::1]:8000/v1"},
        {"base_url": "http://standin.tandem.svc:8000/v1", "standin": True},
    ],
)
def test_plain_http_for_loopback_and_standins(changes: dict[str, Any]) -> None:
    validate(TierSettings, {**GOOD, **changes}, "test")


async def test_starts_only_with_a_secret_and_the_keys_it_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TANDEM_SERVICE_SECRET", raising=False)
    with pytest.raises(ConfigInvalid, match="service_secret"):
        CloudApp(settings())
    monkeypatch.setenv("TANDEM_SERVICE_SECRET", SECRET)
    await CloudApp(settings()).stop()
    with pytest.raises(ConfigInvalid, match="NO_SUCH_KEY"):
        CloudApp(settings(api_key_env="NO_SUCH_KEY"))
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        CloudApp(settings(api_key_file=str(tmp_path / "absent")))
    two_lines = tmp_path / "key"
    two_lines.write_text("one\ntwo")
    with pytest.raises(ConfigInvalid) as caught:
        CloudApp(settings(api_key_file=str(two_lines)))
    assert "two" not in caught.value.message


def test_main_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "cloud.yaml"
    config.write_text("tiers: {small: {model: m}}")
    assert main(["--config", str(config)]) == 2
    assert "tiers.small.base_url" in capsys.readouterr().err


def test_fallbacks_stand_behind_by_default_and_need_names_of_their_own() -> None:
    other = {**GOOD, "provider": "other"}
    tier = validate(TierSettings, {**GOOD, "fallbacks": [other]}, "test")
    assert [(where, one.weight) for where, one in tier.named("tiers.small")] == [
        ("tiers.small", 1),
        ("tiers.small.fallbacks[0]", 0),
    ]
    for bad in ([GOOD], [other, other], [{**other, "fallbacks": []}]):
        with pytest.raises(ConfigInvalid):
            validate(TierSettings, {**GOOD, "fallbacks": bad}, "test")


def test_a_part_of_a_breaker_keeps_the_rest() -> None:
    breaker = validate(TierSettings, {**GOOD, "breaker": {"min_calls": 3}}, "test").breaker
    assert (breaker.failure_share, breaker.cool_s, breaker.window_s) == (0.2, 30.0, 30.0)


def test_the_key_of_a_fallback_is_named_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_SERVICE_SECRET", SECRET)
    other = {**GOOD, "provider": "other", "api_key_env": "NO_SUCH_KEY"}
    with pytest.raises(ConfigInvalid, match=r"tiers\.small\.fallbacks\[0\]\.api_key_file"):
        CloudApp(settings(fallbacks=[other]))
