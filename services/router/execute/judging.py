"""Judges answers while a request runs: takes the signals, asks for more of them in doubt."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Protocol

from services.common.confidence.signals import Signal, logprob_signal
from services.common.confidence.thresholds import Thresholds
from services.common.vocabulary import Reason, Target
from services.router.ask import Ask
from services.router.execute.second_signal import Doubter, second_signals
from services.router.policy.judge import (
    Answered,
    Judgement,
    Subject,
    hedges,
    judge,
    judge_small,
)
from services.router.policy.plan import Plan
from services.router.targets.base import Done, Job
from tandem.router.v1 import router_pb2

_JUDGED_REASONS = frozenset({Reason.GREY_CASCADE, Reason.SECOND_SIGNAL})


class Judging(Protocol):
    """Judges the answers of one attempt."""

    async def verdict(self, done: Done, model_id: str, text: str, limit_ms: float) -> Judgement:
        """Says whether the answer is good enough.

        Args:
            done: How the model ended.
            model_id: The model that answered.
            text: Its answer, which keeps its form.
            limit_ms: Longest wait for a second signal.
        """


@dataclass(frozen=True, slots=True)
class EdgeJudging:
    """See `Judging`.

    Attributes:
        doubter: For the second signal; None where it cannot be had.
        job: What is answered.
    """

    thresholds: Thresholds
    ask: Ask
    doubter: Doubter | None
    job: Job

    async def verdict(self, done: Done, model_id: str, text: str, limit_ms: float) -> Judgement:
        """See `Judging.verdict`."""
        subject = _subject(self.ask, model_id)
        answered = _answered(self.thresholds, self.ask, done, text)
        first = judge(self.thresholds, subject, answered)
        if not first.wants_second:
            return first
        if self.doubter is not None and limit_ms > 0:
            job = replace(self.job, limit_ms=limit_ms)
            more = await second_signals(self.doubter, self.thresholds, subject, job, text)
            answered = replace(answered, signals={**answered.signals, **more})
        return judge(self.thresholds, subject, answered, second_done=True)


@dataclass(frozen=True, slots=True)
class SmallJudging:
    """See `Judging`: of the small cloud model, where the large one could follow."""

    thresholds: Thresholds
    ask: Ask

    async def verdict(self, done: Done, model_id: str, text: str, limit_ms: float) -> Judgement:
        """See `Judging.verdict`."""
        answered = _answered(self.thresholds, self.ask, done, text)
        return judge_small(self.thresholds, _subject(self.ask, model_id), answered)


def judging_for(
    thresholds: Thresholds,
    plan: Plan,
    target: Target,
    job: Job,
    doubter: Doubter | None,
    *,
    large_follows: bool,
) -> Judging | None:
    """The judge of an attempt; None where its answer is not judged.

    Judged are the answers to tasks that say so, and all that a grey decision or a cascade let
    the edge try first, or beside the cloud: the edge's, and the small cloud model's while the
    large one can follow.
    """
    ask = job.ask
    doubt = plan.reason in _JUDGED_REASONS or plan.shadow_best
    if not (thresholds.task(ask.task_type).judged or doubt):
        return None
    if target is Target.CLOUD_SMALL and large_follows:
        return SmallJudging(thresholds, ask)
    return EdgeJudging(thresholds, ask, doubter, job) if target is Target.EDGE else None


def _subject(ask: Ask, model_id: str) -> Subject:
    return Subject(ask.task_type, ask.request.intent, model_id, prompt_id(ask.request))


def _answered(thresholds: Thresholds, ask: Ask, done: Done, text: str) -> Answered:
    return Answered(
        signals=_signals(done),
        worst_logprob=done.min_logprob,
        validated=not ask.free_text,
        hedged=hedges(text, thresholds.hedging),
    )


def prompt_id(request: router_pb2.RouteRequest) -> str:
    """Id of what stands around the question: system text, examples, form and sampling.

    A calibrator fitted under one prompt says nothing of answers under another.
    """
    around = router_pb2.RouteRequest(
        system=request.system,
        few_shot=request.few_shot,
        output=request.output if request.HasField("output") else None,
        sampling=request.sampling if request.HasField("sampling") else None,
    )
    return hashlib.sha256(around.SerializeToString(deterministic=True)).hexdigest()[:12]


def _signals(done: Done) -> dict[Signal, float]:
    if done.mean_logprob is None:
        return {}
    return {Signal.LOGPROB: logprob_signal(done.mean_logprob)}
