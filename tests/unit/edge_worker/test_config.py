"""`config/edge.yaml` says what the defaults are, and wrong settings name themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.errors import ConfigInvalid
from services.common.settings import load_settings
from services.edge_worker.app import lane_limits
from services.edge_worker.config import EdgeSettings
from services.edge_worker.main import ENV_PREFIX
from services.edge_worker.runtime.base import ModelInfo

SHIPPED = Path(__file__).parents[3] / "config" / "edge.yaml"
INFO = ModelInfo("id", "name", "CPUExecutionProvider", 8192, 100, frozenset({1}), 46_080)


def test_shipped_file_shows_the_defaults() -> None:
    assert load_settings(EdgeSettings, SHIPPED, ENV_PREFIX) == EdgeSettings()


def test_shipped_lanes_fit_the_model() -> None:
    lanes = lane_limits(EdgeSettings(), INFO)
    assert [name.value for name in lanes] == ["simple", "complex"]
    assert all(lane.longest_tokens == lane.row_tokens for lane in lanes.values())


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("LANES__SIMPLE__MAX_BATCH_SIZE", "17", "max_batch_size: must be at most slots"),
        ("LANES__SIMPLE__SHARE", "0", "lanes.simple.share"),
        ("SAMPLING__TEMPERATURE", "3", "sampling.temperature"),
        ("NO_SUCH", "1", "no_such"),
    ],
)
def test_wrong_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(f"{ENV_PREFIX}__{name}", value)
    with pytest.raises(ConfigInvalid, match=says):
        load_settings(EdgeSettings, SHIPPED, ENV_PREFIX)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"row_tokens": 9000, "max_cache_bytes": 10**10}, "lanes.simple.row_tokens"),
        ({"max_cache_bytes": 1000}, "lanes.simple.max_cache_bytes"),
    ],
)
def test_lane_that_cannot_be_is_refused(changes: dict[str, int], says: str) -> None:
    settings = EdgeSettings.model_validate({"lanes": {"simple": changes}})
    with pytest.raises(ConfigInvalid, match=says):
        lane_limits(settings, INFO)
