"""Judges answers while a request runs: takes the signals, asks for a second one in doubt."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from services.common.confidence.likeness import likeness
from services.common.confidence.signals import Signal, logprob_signal
from services.common.confidence.thresholds import Thresholds
from services.common.errors import TandemError
from services.common.vocabulary import Reason, Target
from services.router.ask import Ask
from services.router.policy.judge import Answered, Judgement, Subject, hedges, judge
from services.router.policy.plan import Plan
from services.router.targets.base import Done, Job
from tandem.router.v1 import router_pb2

_log = structlog.get_logger()
_JUDGED_REASONS = frozenset({Reason.GREY_CASCADE, Reason.SECOND_SIGNAL})


class Sampler(Protocol):
    """A model that can answer the same question several times at once."""

    async def sample(self, job: Job, count: int, temperature: float) -> list[str]:
        """Whole answers that share one prefill. Raises RemoteError."""


@dataclass(frozen=True, slots=True)
class Judging:
    """Judges the answers of one attempt.

    Attributes:
        sampler: For the second signal; None where it cannot be had.
        job: What is answered.
    """

    thresholds: Thresholds
    ask: Ask
    sampler: Sampler | None
    job: Job

    async def verdict(self, done: Done, model_id: str, text: str, limit_ms: float) -> Judgement:
        """Says whether the answer is good enough.

        Args:
            done: How the model ended.
            model_id: The model that answered.
            text: Its answer, which keeps its form.
            limit_ms: Longest wait for a second signal.
        """
        subject = Subject(
            self.ask.task_type, self.ask.request.intent, model_id, prompt_id(self.ask.request)
        )
        answered = Answered(
            signals=_signals(done),
            worst_logprob=done.min_logprob,
            validated=not self.ask.free_text,
            hedged=hedges(text, self.thresholds.hedging),
        )
        first = judge(self.thresholds, subject, answered)
        if not first.wants_second:
            return first
        agreed = await self._agreement(text, limit_ms)
        if agreed is not None:
            signals = {**answered.signals, Signal.AGREEMENT: agreed}
            answered = replace(answered, signals=signals)
        return judge(self.thresholds, subject, answered, second_done=True)

    async def _agreement(self, text: str, limit_ms: float) -> float | None:
        """Mean likeness of further samples to the answer; None where none came in time."""
        if self.sampler is None or limit_ms <= 0:
            return None
        count = self.thresholds.task(self.ask.task_type).samples
        job = replace(self.job, limit_ms=limit_ms)
        try:
            async with asyncio.timeout(limit_ms / 1000.0):
                samples = await self.sampler.sample(job, count, self.thresholds.sample_temperature)
        except (TimeoutError, TandemError) as error:
            _log.warning("second_signal_failed", error=type(error).__name__)
            return None
        return _mean([likeness(text, sample) for sample in samples])


def judging_for(
    thresholds: Thresholds, plan: Plan, ask: Ask, target: Target, sampler: Sampler | None, job: Job
) -> Judging | None:
    """The judge of an attempt; None where its answer is not judged.

    Judged are the edge's answers to tasks that say so, and all that a grey decision or a
    cascade let the edge try first, or beside the cloud.
    """
    doubt = plan.reason in _JUDGED_REASONS or plan.shadow_best
    wanted = thresholds.task(ask.task_type).judged or doubt
    if target is not Target.EDGE or not wanted:
        return None
    return Judging(thresholds, ask, sampler, job)


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


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
