"""The second signal: samples, what the model says of itself, and a scorer that was learned."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from services.common.confidence.features import FEATURES
from services.common.confidence.learned import LearnedScorer
from services.common.confidence.likeness import normal_form
from services.common.confidence.signals import Signal
from services.common.confidence.thresholds import Scorer, TaskJudging, Thresholds
from services.common.errors import Code
from services.common.vocabulary import Level
from services.router.execute.second_signal import scored, second_signals
from services.router.policy.judge import Subject
from services.router.targets.base import Job
from tests.fakes.targets import failure
from tests.unit.router.test_executor import make_ask

SUBJECT = Subject("open_question", "", "model-1", "prompt-1")
VOTES = FEATURES.index("votes_log_odds")


def scorer(**changes: object) -> Scorer:
    """One that looks at the votes alone."""
    n = len(FEATURES)
    weights = tuple(float(index == VOTES) for index in range(n))
    values: dict[str, object] = {
        "task": "open_question", "model_id": "model-1", "prompt_id": "prompt-1",
        "means": (0.0,) * n, "scales": (1.0,) * n, "weights": weights, "offset": 0.0,
    }  # fmt: skip
    return Scorer.model_validate({**values, **changes})


@dataclass
class AskedAgain:
    """Answers as it was told to."""

    samples: Sequence[str] | Exception = ()
    report: float | Exception = 0.9
    wait_s: float = 0.0
    reports: int = 0

    async def sample(self, job: Job, count: int, temperature: float) -> list[str]:
        """See `Doubter.sample`."""
        await asyncio.sleep(self.wait_s)
        if isinstance(self.samples, Exception):
            raise self.samples
        return list(self.samples)[:count]

    async def self_report(self, job: Job, text: str) -> float:
        """See `Doubter.self_report`."""
        self.reports += 1
        if isinstance(self.report, Exception):
            raise self.report
        return self.report


def job(limit_ms: float = 1_000.0) -> Job:
    return Job(make_ask(), Level.L0, limit_ms, 64, 1_000, simple_lane=True)


def thresholds(*scorers: Scorer, self_report: bool = False) -> Thresholds:
    judging = TaskJudging(judged=True, self_report=self_report)
    return Thresholds(tasks={"open_question": judging}, scorers=scorers)


async def test_samples_alone_are_the_agreement() -> None:
    doubter = AskedAgain(["Rome.", "rome", "Milan"])
    found = await second_signals(doubter, thresholds(), SUBJECT, job(), "Rome")
    assert found == {Signal.AGREEMENT: pytest.approx(2 / 3)}
    assert doubter.reports == 0


async def test_the_model_is_asked_about_itself_where_the_task_says_so() -> None:
    doubter = AskedAgain(["Rome"], report=0.8)
    found = await second_signals(doubter, thresholds(self_report=True), SUBJECT, job(), "Rome")
    assert found == {Signal.AGREEMENT: 1.0, Signal.SELF_REPORT: 0.8}


async def test_a_scorer_of_this_model_reads_the_samples() -> None:
    doubter = AskedAgain(["Rome", "Rome", "Milan"])
    found = await second_signals(doubter, thresholds(scorer()), SUBJECT, job(), "Rome")
    assert set(found) == {Signal.AGREEMENT, Signal.SCORER}
    assert 0.6 < found[Signal.SCORER] < 0.9


@pytest.mark.parametrize("field", ["task", "model_id", "prompt_id"])
async def test_a_scorer_of_something_else_is_silent(field: str) -> None:
    doubter = AskedAgain(["Rome"])
    other = thresholds(scorer(**{field: "another"}))
    assert set(await second_signals(doubter, other, SUBJECT, job(), "Rome")) == {Signal.AGREEMENT}


async def test_what_fails_or_is_late_is_absent_and_the_rest_counts() -> None:
    down = failure(Code.UNAVAILABLE, "EDGE_DOWN")
    asked = thresholds(self_report=True)
    only_report = await second_signals(AskedAgain(down), asked, SUBJECT, job(), "Rome")
    assert only_report == {Signal.SELF_REPORT: 0.9}
    only_samples = await second_signals(AskedAgain(["Rome"], down), asked, SUBJECT, job(), "Rome")
    assert only_samples == {Signal.AGREEMENT: 1.0}
    late = await second_signals(AskedAgain(["Rome"], wait_s=5), asked, SUBJECT, job(20.0), "Rome")
    assert late == {Signal.SELF_REPORT: 0.9}


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5))
def test_an_answer_that_was_outvoted_is_no_likelier_than_its_own_votes(samples: list[str]) -> None:
    sure = replace(scorer().learned, offset=20.0)
    found = scored(sure, "which?", "a", samples)
    votes = [*samples].count("a") + 1
    most = max([*samples, "a"].count(letter) for letter in "abc")
    assert 0.0 <= found <= 1.0
    if votes < most:
        assert found <= votes / (len(samples) + 1)
    else:
        assert found > 0.99


def test_answers_are_equal_in_their_normal_form() -> None:
    assert normal_form('{"b": 1, "a": 2}') == normal_form('{"a":2,"b":1}')
    assert normal_form("Rome.") == normal_form(" rome")
    assert normal_form("Rome") != normal_form("Milan")


def test_a_scorer_with_a_weight_too_few_is_refused() -> None:
    with pytest.raises(ValidationError, match="a scorer needs 16 weights"):
        scorer(weights=(1.0,))
    assert isinstance(scorer().learned, LearnedScorer)
