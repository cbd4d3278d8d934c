"""The second signal of a doubtful edge answer: what the same model says when asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeVar

import structlog

from services.common.confidence.agreement import agreement
from services.common.confidence.learned import LearnedScorer
from services.common.confidence.likeness import likeness, normal_form
from services.common.confidence.signals import Signal
from services.common.confidence.thresholds import Thresholds
from services.common.errors import TandemError
from services.router.policy.judge import Subject
from services.router.targets.base import Job

_log = structlog.get_logger()
_Found = TypeVar("_Found")


class Doubter(Protocol):
    """A model that can be asked again about what it has answered."""

    async def sample(self, job: Job, count: int, temperature: float) -> list[str]:
        """Whole answers that share one prefill. Raises RemoteError."""

    async def self_report(self, job: Job, text: str) -> float:
        """Its probability that `text` answers the question rightly. Raises RemoteError."""


async def second_signals(
    doubter: Doubter, thresholds: Thresholds, subject: Subject, job: Job, text: str
) -> dict[Signal, float]:
    """Further signals of the answer `text`, those that came within `job.limit_ms`.

    Agreement is the mean likeness of samples to the answer. A learned scorer, where there is
    one for this model and prompt, reads the same samples. Self-report is asked for where the
    task says so.
    """
    judging = thresholds.task(subject.task)
    sampling = doubter.sample(job, judging.samples, thresholds.sample_temperature)
    samples, own = await asyncio.gather(
        _in_time(sampling, Signal.AGREEMENT, job),
        _own_report(doubter, job, text, wanted=judging.self_report),
    )
    signals = {} if own is None else {Signal.SELF_REPORT: own}
    if samples:
        signals[Signal.AGREEMENT] = sum(likeness(text, one) for one in samples) / len(samples)
        scorer = thresholds.scorer(subject.task, subject.model_id, subject.prompt_id)
        if scorer is not None:
            question = job.ask.request.messages[-1].content
            signals[Signal.SCORER] = scored(scorer, question, text, samples)
    return signals


def scored(scorer: LearnedScorer, question: str, text: str, samples: Sequence[str]) -> float:
    """The learned probability that `text` is right.

    The scorer speaks of the most frequent answer. Where that is another one, `text` cannot be
    likelier than the share of samples that give it.
    """
    answers = [normal_form(one) for one in (text, *samples)]
    found = agreement(answers)
    score = scorer.score(question, found)
    if found.answer == answers[0]:
        return score
    return min(score, answers.count(answers[0]) / len(answers))


async def _own_report(doubter: Doubter, job: Job, text: str, *, wanted: bool) -> float | None:
    if not wanted:
        return None
    return await _in_time(doubter.self_report(job, text), Signal.SELF_REPORT, job)


async def _in_time(asked: Awaitable[_Found], signal: Signal, job: Job) -> _Found | None:
    try:
        async with asyncio.timeout(job.limit_ms / 1000.0):
            return await asked
    except (TimeoutError, TandemError) as error:
        _log.warning("second_signal_failed", signal=signal, error=type(error).__name__)
        return None
