"""Replay: what it predicts is what a run of the new policy gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evaluation.replay.rule import ReplayPolicy
from evaluation.replay.run import replay
from evaluation.rows import BadData
from services.common.confidence.thresholds import Bands, Thresholds
from tests.unit.evaluation.ledger_rows import row, write_ledger

FORCE = ReplayPolicy(5, 7, 0, 8.5, "both", "cascade", Thresholds(default=Bands(low=0.3, high=0.6)))
NEW = replace(FORCE, thresholds=Thresholds(default=Bands(low=0.2, high=0.95)))


def run(policy: ReplayPolicy, count: int, seed: int) -> list[dict[str, Any]]:
    """A world: hard requests go wrong at the edge, and its score knows it a little.

    Each request is the same whatever the policy, and every answer has a verdict.
    """
    rows = []
    for number in range(count):
        random = np.random.default_rng((seed, number))
        score = 1 + 9 * random.random()
        raw = float(np.clip(1.1 - score / 10 + random.normal(0, 0.15), 0, 1))
        edge_right, cloud_right = bool(random.random() < raw), bool(random.random() < 0.95)
        edge = {"target": "EDGE", "ms": 80 + 10 * random.random()}
        small = {"target": "CLOUD_SMALL", "ms": 900.0, "cost_micro_usd": 100 + number % 50}
        large = {"target": "CLOUD_LARGE", "ms": 1500.0, "cost_micro_usd": 400 + number % 50}
        bands = policy.thresholds.default.edges
        judged = policy.low <= score < policy.high
        rejected = judged and raw < bands[2]
        cloud = large if score >= policy.large_from else small
        if score < policy.high:
            reason = "GREY_CASCADE" if judged else "COMPLEXITY_LOW"
            next_ = large if raw < bands[0] else small
            tried = [edge | {"reason": reason}, *([next_] if rejected else [])]
        else:
            tried = [cloud | {"reason": "COMPLEXITY_HIGH"}]
        target = str(tried[-1]["target"])
        right = edge_right if target == "EDGE" else cloud_right
        rows.append(
            row(number, target, tried, complexity=score, session_hash=f"s{number // 3}",
                confidence_raw=raw if judged else None, verdict="GOOD" if right else "BAD")
        )  # fmt: skip
    return rows


def test_the_policy_in_force_replays_to_itself(tmp_path: Path) -> None:
    file = write_ledger(tmp_path / "a.parquet", run(FORCE, 400, 1))
    found = replay(file, FORCE)
    assert found.moved == ()
    assert found.replayed == found.recorded
    assert found.decided_anew == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_what_is_predicted_is_what_happens(tmp_path: Path, seed: int) -> None:
    """The actual run is of other requests than the replay has seen."""
    recorded = write_ledger(tmp_path / "a.parquet", run(FORCE, 3_000, seed))
    actual = write_ledger(tmp_path / "b.parquet", run(NEW, 3_000, seed + 100))
    predicted, happened = replay(recorded, NEW), replay(actual, NEW).recorded
    assert predicted.imputed == 0.0
    now = predicted.replayed
    # Two samples of the same: either may be off by its own error.
    slack = happened.cost.high - happened.cost.value
    assert now.cost.low - slack <= happened.cost.value <= now.cost.high + slack
    assert now.escalation.value == pytest.approx(happened.escalation.value, abs=0.045)
    assert now.accuracy is not None and happened.accuracy is not None
    assert abs(now.accuracy.value - happened.accuracy.value) < 0.03
    assert now.escalation.low > predicted.recorded.escalation.high


def test_where_the_edge_never_ran_the_interval_says_so(tmp_path: Path) -> None:
    """The new grey zone reaches to requests that are harder than any the edge has tried."""
    wider = replace(NEW, high=9.0)
    recorded = write_ledger(tmp_path / "a.parquet", run(FORCE, 3_000, 1))
    predicted = replay(recorded, wider)
    happened = replay(write_ledger(tmp_path / "b.parquet", run(wider, 3_000, 1)), wider).recorded
    assert predicted.imputed > 0.15
    cost = predicted.replayed.cost
    assert cost.low <= happened.cost.value <= cost.high
    assert cost.high - cost.low > 20.0


def test_fallback_rates(tmp_path: Path) -> None:
    edge, small = {"target": "EDGE", "reason": "GREY_CASCADE"}, {"target": "CLOUD_SMALL"}
    rows = [
        row(0, "CLOUD_SMALL", [edge, small], complexity=6.0, confidence_raw=0.5,
            shadow='{"edge_ok": true}'),
        row(1, "CLOUD_SMALL", [edge, small], complexity=6.0, confidence_raw=0.1,
            shadow='{"edge_ok": false}'),
        row(2, "EDGE", [edge], complexity=6.0, confidence_raw=0.9, verdict="BAD"),
        row(3, "EDGE", [edge], complexity=6.0, confidence_raw=0.9, verdict="GOOD"),
    ]  # fmt: skip
    file = write_ledger(tmp_path / "a.parquet", rows)
    lenient = replace(FORCE, thresholds=Thresholds(default=Bands(low=0.0, high=0.4)))
    found = replay(file, lenient)
    assert found.recorded.wrong_fallback is not None and found.recorded.missed_fallback is not None
    assert found.recorded.wrong_fallback.value == 0.5
    assert found.recorded.missed_fallback.value == 0.5
    assert found.replayed.wrong_fallback is not None and found.replayed.missed_fallback is not None
    assert found.replayed.wrong_fallback.value == 0.0
    assert found.replayed.missed_fallback.value == pytest.approx(1 / 3)
    assert found.moved == (("CLOUD_SMALL", "EDGE", 1),)


def test_hard_decisions_stay(tmp_path: Path) -> None:
    pinned = row(0, "EDGE", [{"target": "EDGE", "reason": "PII_PIN"}], complexity=9.5)
    ruled = row(1, "CLOUD_LARGE", [{"target": "CLOUD_LARGE", "reason": "HARD_RULE"}])
    found = replay(write_ledger(tmp_path / "a.parquet", [pinned, ruled]), NEW)
    assert found.moved == ()
    assert found.decided_anew == 0.0
    assert found.recorded.accuracy is None


def test_a_session_keeps_its_side_within_the_hysteresis(tmp_path: Path) -> None:
    sticky = replace(FORCE, hysteresis=2.0)
    small = [{"target": "CLOUD_SMALL", "reason": "COMPLEXITY_HIGH"}]
    rows = [
        row(0, "CLOUD_SMALL", small, complexity=8.0, session_hash="s"),
        row(1, "CLOUD_SMALL", small, complexity=5.5, session_hash="s"),
        row(2, "CLOUD_SMALL", small, complexity=5.5, session_hash="t"),
    ]
    file = write_ledger(tmp_path / "a.parquet", rows[::-1])
    assert replay(file, sticky, tmp_path / "moved.parquet").moved == ()
    cheap = replace(sticky, thresholds=Thresholds(default=Bands(low=0.0, high=0.0)), low=6.0)
    replay(file, cheap, tmp_path / "moved.parquet")
    assert pl.read_parquet(tmp_path / "moved.parquet")["row_id"].to_list() == ["r000002"]


def test_bad_files_are_named(tmp_path: Path) -> None:
    file = write_ledger(tmp_path / "a.parquet", run(FORCE, 50, 1))
    pl.read_parquet(file).drop("attempts").write_parquet(tmp_path / "b.parquet")
    with pytest.raises(BadData, match="the column `attempts` is missing"):
        replay(tmp_path / "b.parquet", FORCE)
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(BadData, match="not a whole Parquet file"):
        replay(file, FORCE, tmp_path / "moved.parquet")
    with pytest.raises(BadData, match="no rows that a model answered"):
        replay(write_ledger(tmp_path / "c.parquet", []), FORCE)
    assert not (tmp_path / "moved.parquet").exists()
