"""The swept threshold: what it promises, and when there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluation.judged.counts import Counts, count
from evaluation.judged.data import read_judged
from evaluation.objective import Objective
from evaluation.rows import BadData
from evaluation.sweep.choose import EXACT, MEANS, choose, knee, naive
from evaluation.sweep.dual import dual
from evaluation.sweep.points import THRESHOLDS, CloudVerdicts, Costs, Point, points
from evaluation.sweep.prove import prove
from evaluation.sweep.run import SHARES, InForce, Wish, sweep_task
from services.common.confidence.calibrator import Identity
from tests.unit.evaluation.judged_rows import judged, write_lines


def counts_of(count_: int, seed: int, cloud: float = 0.97) -> Counts:
    """Rows right with probability equal to their score, in three parts."""
    random = np.random.default_rng(seed)
    scores = np.round(random.random(count_), 4)
    one = np.ones(count_)
    right = (random.random(count_) < scores).astype(np.float64)
    strong = (random.random(count_) < cloud).astype(np.float64)
    parts = random.choice(3, count_, p=SHARES)
    return Counts(scores, np.full(count_, ""), parts, one, right, one.copy(), strong)


def test_a_false_threshold_is_chosen_no_more_often_than_was_said() -> None:
    """Kept from t on, answers are right with (1 + t) / 2: 0.8 holds from t = 0.6 on."""
    wish = Wish(Objective.ACCEPTED_ACCURACY, 0.8, 0.1)
    false = naive_false = found = 0
    for seed in range(200):
        swept = sweep_task("t", counts_of(400, seed), wish, None)
        if swept.choice.threshold is not None:
            found += 1
            false += swept.choice.threshold < 0.6 - 1e-9
        point = naive(wish.objective, swept.curve, wish.target)
        naive_false += point is not None and point < 0.6 - 1e-9
    assert found > 60
    assert false <= 200 * 0.1 + 9  # two standard errors
    assert naive_false > 3 * false


def test_system_accuracy_holds_on_rows_not_seen() -> None:
    wish = Wish(Objective.SYSTEM_ACCURACY, 0.85, 0.05, unseen_rows=150)
    held = [
        one.holds
        for seed in range(40)
        for one in sweep_task("t", counts_of(500, seed), wish, None).measured
        if one.name == "chosen"
    ]
    assert len(held) > 30
    assert sum(held) >= 0.95 * len(held)


def test_escalating_everything_is_no_threshold() -> None:
    random = np.random.default_rng(0)
    one, scores = np.ones(600), np.full(600, 0.5)
    wrong = np.zeros(600)
    counts = Counts(scores, np.full(600, ""), random.choice(3, 600, p=SHARES), one, wrong, one, one)
    swept = sweep_task("t", counts, Wish(Objective.SYSTEM_ACCURACY, 0.9), None)
    assert swept.choice.threshold is None
    assert "escalate everything" in swept.choice.why
    assert swept.bands is None


def test_a_mean_for_the_cloud_is_said_and_tested_by_another_theorem() -> None:
    counts = counts_of(900, 1)
    counts.cloud_known[:300] = 0
    counts.cloud_right[:300] = 0
    swept = sweep_task("t", counts, Wish(Objective.SYSTEM_ACCURACY, 0.8), None)
    assert swept.choice.theorem == MEANS
    assert "300 of 900 rows have no verdict on the cloud's answer" in swept.warnings[0]
    whole = sweep_task("t", counts_of(900, 1), Wish(Objective.SYSTEM_ACCURACY, 0.8), None)
    assert whole.choice.theorem == EXACT
    assert whole.warnings == ()


def test_without_any_cloud_verdict_only_kept_answers_can_be_promised() -> None:
    counts = counts_of(900, 1)
    counts.cloud_known[:] = 0
    counts.cloud_right[:] = 0
    wished = (Objective.SYSTEM_ACCURACY, Objective.EXPECTED_COST, Objective.KNEE)
    for objective in wished:
        swept = sweep_task("t", counts, Wish(objective, 0.8), None)
        assert swept.choice.threshold is None
        assert "needs verdicts on the cloud's answers" in swept.choice.why
    kept = sweep_task("t", counts, Wish(Objective.ACCEPTED_ACCURACY, 0.8), None)
    assert kept.choice.threshold is not None


def test_dear_errors_raise_the_threshold() -> None:
    counts = counts_of(2_000, 4)
    chosen = [
        sweep_task(
            "t", counts, Wish(Objective.EXPECTED_COST, costs=Costs(1.0, {"default": price})), None
        ).choice
        for price in (1.0, 5.0, 50.0)
    ]
    levels = [one.threshold for one in chosen]
    assert levels[0] is not None and levels[1] is not None and levels[2] is not None
    assert levels[0] < levels[1] < levels[2]
    assert all(one.bound is not None and one.bound > 0 for one in chosen)


def test_errors_cost_by_intent() -> None:
    one = np.ones(2)
    counts = Counts(one, np.array(["billing", "x"]), one.astype(int), one, one * 0, one, one)
    point = points(counts, one, CloudVerdicts(None), Costs(1.0, {"billing": 30.0, "default": 2.0}))
    assert point[0].cost == pytest.approx(16.0)


def test_the_knee_bends_most() -> None:
    curve = [Point(t, 100, 100 - e, 0, s, 0.0, 1.0) for t, e, s in
             [(0.0, 0, 60), (0.2, 10, 85), (0.4, 50, 90), (0.8, 90, 95)]]  # fmt: skip
    assert knee(curve).threshold == 0.2


def test_in_force_is_measured_beside_it() -> None:
    swept = sweep_task("t", counts_of(900, 1), Wish(target=0.8), InForce(0.3, Identity()))
    by_name = {one.name: one for one in swept.measured}
    assert by_name["in force"].point.threshold == 0.3
    assert not by_name["in force"].holds
    refused = InForce(0.3, Identity(), refused=True)
    swept = sweep_task("t", counts_of(900, 1), Wish(target=0.8), refused)
    assert swept.measured[-1].point.escalation == 1.0


def test_grey_zone() -> None:
    counts = counts_of(4_000, 2)
    curve = points(counts, counts.scores, CloudVerdicts(None), Costs())
    found = dual(curve, 0.9, 0.05, 0.3)
    # Below t answers are right with t / 2.
    assert found.low == pytest.approx(0.56, abs=0.05)
    assert found.grey == pytest.approx(0.9 - found.low, abs=0.03)
    wide = sweep_task("t", counts_of(900, 1), Wish(target=0.8, hopeless=0.01), None)
    assert any("grey zone" in text for text in wide.warnings)


def test_too_few_rows_name_the_number() -> None:
    with pytest.raises(BadData, match=r"5 rows, .* at least 59 are needed there \(148 in all\)"):
        sweep_task("t", counts_of(5, 0), Wish(), None)
    with pytest.raises(BadData, match="no sample shows more"):
        sweep_task("t", counts_of(500, 0), Wish(target=1.0), None)


def test_the_curve_has_every_threshold_and_only_rises() -> None:
    swept = sweep_task("t", counts_of(900, 1), Wish(target=0.8), None)
    assert tuple(point.threshold for point in swept.curve) == THRESHOLDS
    escalated = [point.escalation for point in swept.curve]
    assert escalated == sorted(escalated)


def test_prove_beside_the_point_estimate(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", judged(500))
    wish = Wish(Objective.SYSTEM_ACCURACY, 0.85)
    unseen, truth, point = prove(file, wish, 20)
    assert unseen.held >= 0.95 * unseen.found > 0
    assert unseen.found <= truth.found <= point.found == 20
    assert truth.held / truth.found > point.held / point.found
    assert point.escalation < truth.escalation <= unseen.escalation + 1e-9


def test_a_large_part_is_calibrated(tmp_path: Path) -> None:
    rows = judged(5_000, accuracy=lambda score: score**2)
    read = read_judged(write_lines(tmp_path / "a.jsonl", rows))
    swept = sweep_task("t", count(read.frame, SHARES, 0)["order"], Wish(target=0.8), None)
    assert swept.calibrator.probability(0.5) == pytest.approx(0.25, abs=0.08)


def test_choose_starts_where_other_rows_look_safest() -> None:
    """One lucky pass at the top must not be needed: few answers are kept there."""
    counts = counts_of(3_000, 7)
    parts = [points(counts.part(i), counts.part(i).scores, CloudVerdicts(None), Costs())
             for i in range(2)]  # fmt: skip
    choice = choose(Objective.ACCEPTED_ACCURACY, parts[0], parts[1], 0.8, 0.05, True)
    assert choice.threshold is not None
    assert 0.6 <= choice.threshold <= 0.72
