"""Walks a plan: asks the state machine, runs attempts, and serves the reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from opentelemetry import trace

from services.common.breaker import Permit
from services.common.telemetry import names
from services.common.vocabulary import (
    AttemptOutcome,
    FallbackType,
    Reason,
    StreamMode,
    Target,
)
from services.router.ask import Ask
from services.router.execute.attempt import AttemptRun, Ended, release_for
from services.router.execute.duel import Side, duel
from services.router.execute.judging import judging_for
from services.router.execute.last_resort import last_resort
from services.router.execute.payload import escalate
from services.router.execute.results import (
    describe,
    ran_record,
    refused_by_breaker,
    reply_of,
    skipped_record,
    tell_breaker,
)
from services.router.execute.second_signal import Doubter
from services.router.execute.sink import Sink
from services.router.execute.trail import Reply, Trail
from services.router.policy import machine
from services.router.policy.config import Policy
from services.router.policy.facts import CLOUD, Facts
from services.router.policy.plan import Plan
from services.router.policy.recheck import Recheck
from services.router.state.breakers import Breakers
from services.router.state.cloud_latency import CloudLatency
from services.router.state.edge_quality import EdgeQuality
from services.router.state.lengths import OutputLengths
from services.router.targets.base import Job, ModelTarget
from tandem.common.v1 import chat_pb2

_tracer = trace.get_tracer("tandem.router")


@dataclass(frozen=True, slots=True)
class Errand:
    """One request on its way through its plan: what is known, where text goes, what happened."""

    ask: Ask
    facts: Facts
    policy: Policy
    plan: Plan
    sink: Sink
    trail: Trail


@dataclass(frozen=True, slots=True)
class Executor:
    """Runs plans against the model targets."""

    models: Mapping[Target, ModelTarget]
    cloud_latency: CloudLatency
    breakers: Breakers
    clock: Callable[[], float]
    quality: EdgeQuality = field(default_factory=EdgeQuality)
    lengths: OutputLengths = field(default_factory=OutputLengths)
    doubter: Doubter | None = None
    """Asks the edge again, as a second signal."""

    async def run(self, errand: Errand) -> Reply:
        """Tries the plan's attempts in order until one serves; L4 always does."""
        plan, policy, trail = errand.plan, errand.policy, errand.trail
        progress = machine.begin(plan)
        estimates = machine.estimates_of(errand.facts, plan.expected_output_tokens)
        while True:
            remaining = errand.ask.budget.remaining_ms(self.clock())
            move = machine.next_move(progress, policy, remaining, estimates)
            if isinstance(move, machine.LastResort):
                return await _last_resort(errand, move)
            permit = None
            if isinstance(move, machine.Enter):
                permit = self._permit(plan, move)
                if permit is None:
                    move = refused_by_breaker(move)
            if isinstance(move, machine.Skip):
                trail.attempts.append(skipped_record(move))
                progress = progress.skipped(move)
            elif isinstance(move, machine.Enter) and permit is not None:
                beside = machine.beside(progress, policy, remaining, estimates)
                if beside is not None:
                    runs = await self._both(errand, move, permit, beside)
                    progress = replace(progress, beside=beside.index)
                else:
                    quality = progress.failure is FallbackType.QUALITY
                    runs = [(move, await self._attempt(errand, move, permit, escalates=quality))]
                for entered, ended in runs:
                    progress = _after(progress, entered, ended)
                    if progress.served:
                        return reply_of(entered, ended, progress)
                    await _withdraw(errand, progress, entered, ended)

    async def _both(
        self, errand: Errand, move: machine.Enter, permit: Permit, beside: machine.Enter
    ) -> list[tuple[machine.Enter, Ended]]:
        """Runs the first attempt and the edge at once; one that served comes last."""
        second = self.breakers.admit(beside.attempt.target, self.clock())
        if second is None:
            return [(move, await self._attempt(errand, move, permit, escalates=False))]
        # Text that may be withdrawn would be shown by both.
        shown = StreamMode.COMMIT if errand.ask.mode is StreamMode.PROVISIONAL else errand.ask.mode
        ask, entered = replace(errand.ask, mode=shown), {move: permit, beside: second}

        def side(one: machine.Enter) -> Side:
            return lambda sink: self._attempt(
                replace(errand, ask=ask, sink=sink), one, entered[one], escalates=False
            )

        try:
            ended = await duel({one.attempt.target: side(one) for one in entered}, errand.sink)
        finally:
            for leave in entered.values():  # of one that was ended before it began
                leave.dropped()
        errand.trail.attempts.sort(key=lambda record: record.index)
        runs = [(one, ended[one.attempt.target]) for one in entered if one.attempt.target in ended]
        # Where the first serves, the edge's answer was not needed, and nothing fell back.
        return runs[:1] if runs and runs[0][1].outcome in machine.SERVED else runs

    def _permit(self, plan: Plan, move: machine.Enter) -> Permit | None:
        """Leave to enter an attempt.

        An edge that refused many calls because it was full has an open breaker too. Where
        nothing behind it would be let through either, it is asked all the same: its refusals
        are quick, and the other way is a canned reply.
        """
        target, now = move.attempt.target, self.clock()
        permit = self.breakers.admit(target, now)
        if permit is not None or target is not Target.EDGE:
            return permit
        later = {attempt.target for attempt in plan.attempts[move.index + 1 :]}
        if any(not self.breakers.open(each, now) for each in later):
            return None
        return self.breakers.insist(target)

    def _large_follows(self, plan: Plan, move: machine.Enter) -> bool:
        """Whether the large model can be asked after this attempt."""
        now, large = self.clock(), Target.CLOUD_LARGE
        later = {attempt.target for attempt in plan.attempts[move.index + 1 :]}
        return large in later and not self.breakers.open(large, now)

    async def _attempt(
        self, errand: Errand, move: machine.Enter, permit: Permit, *, escalates: bool
    ) -> Ended:
        target, started = move.attempt.target, self.clock()
        ask, policy, trail = errand.ask, errand.policy, errand.trail
        final_ms = max(move.cap_ms, ask.budget.remaining_ms(started) - policy.caps.reserve_ms)
        job = _job(errand, move, move.cap_ms)
        judging = judging_for(
            policy.thresholds,
            errand.plan,
            target,
            job,
            self.doubter,
            large_follows=self._large_follows(errand.plan, move),
        )
        judged = judging is not None or not ask.free_text
        release = release_for(ask.mode, policy.commit_tokens, judged=judged)
        if release.mode is not StreamMode.HOLD:
            job = replace(job, limit_ms=final_ms)
        sent = None
        if escalates and target in CLOUD:
            sent = escalate(ask, trail, policy.payload)
            job = replace(job, ask=sent.ask) if sent else job
        run = AttemptRun(
            target,
            self.models[target],
            job,
            release,
            errand.sink,
            self.clock,
            _recheck(errand, move),
            judging,
        )
        ended = Ended(AttemptOutcome.CANCELLED, FallbackType.NONE, Reason.DEFAULT)
        payload_tokens = (sent.tokens_before, sent.tokens_after) if sent else None
        with _span(move) as span:
            try:
                ended = await run.run(move.cap_ms, final_ms)
            finally:
                duration_ms = (self.clock() - started) * 1000.0
                trail.first_text_at = trail.first_text_at or run.first_text_at
                record = ran_record(move, ended, duration_ms)
                trail.attempts.append(replace(record, payload_tokens=payload_tokens))
                tell_breaker(permit, move, ended, self.clock())
                describe(span, ended)
        if target is Target.EDGE:
            trail.judgement = ended.judgement or trail.judgement
        self._learn(errand, target, ended, duration_ms)
        return ended

    def _learn(self, errand: Errand, target: Target, ended: Ended, duration_ms: float) -> None:
        task = errand.ask.task_type
        whole = ended.outcome is AttemptOutcome.ACCEPTED
        if whole and ended.finish_reason == chat_pb2.FINISH_REASON_STOP:
            self.lengths.took(task, ended.usage.output_tokens)
        if target is Target.EDGE:
            self.quality.took(task, ended.outcome)
            return
        # How long one that was given up would have taken is not known, only that it is more
        # than this: it counts where it is more than was expected.
        late = ended.outcome is AttemptOutcome.TIMED_OUT
        if whole or (late and duration_ms > errand.facts.cloud[target].eta_ms):
            self.cloud_latency.took(target, duration_ms, self.clock())


def _after(progress: machine.Progress, move: machine.Enter, ended: Ended) -> machine.Progress:
    hopeless = ended.judgement is not None and ended.judgement.hopeless
    return progress.after(move, ended.outcome, ended.failure, ended.reason, hopeless=hopeless)


def _job(errand: Errand, move: machine.Enter, limit_ms: float) -> Job:
    policy, edge = errand.policy, errand.facts.edge
    tokens = errand.ask.request.max_output_tokens or policy.default_max_output_tokens
    if move.attempt.truncated:
        tokens = min(tokens, max(1, int((move.cap_ms - edge.ttft_ms) / max(edge.tpot_ms, 0.1))))
    size = errand.facts.features.input_tokens + errand.plan.expected_output_tokens
    return Job(
        ask=errand.ask,
        level=move.attempt.level,
        limit_ms=limit_ms,
        max_output_tokens=tokens,
        context_tokens=int(policy.degrade_context_share * edge.context_tokens),
        simple_lane=size <= policy.latency.simple_lane_max_tokens,
    )


def _recheck(errand: Errand, move: machine.Enter) -> Recheck | None:
    """Only the edge is looked at twice, and only where a cloud attempt stands behind it."""
    if move.attempt.target is not Target.EDGE or move.attempt.truncated:
        return None
    later = [a.target for a in errand.plan.attempts[move.index + 1 :] if a.target in CLOUD]
    if not later:
        return None
    policy = errand.policy
    return Recheck(
        at_share=policy.latency.recheck_share,
        edge_share=policy.latency.edge_share,
        expected_tokens=errand.plan.expected_output_tokens,
        cloud_eta_ms=errand.facts.cloud[later[0]].eta_ms,
        reserve_ms=policy.caps.reserve_ms,
        ttft_ms=errand.facts.edge.ttft_ms,
    )


async def _last_resort(errand: Errand, move: machine.LastResort) -> Reply:
    reply = last_resort(
        errand.ask.request, errand.policy, errand.trail, move.reason, move.fallback_type
    )
    await errand.sink.chunk(reply.text, reply.target, committed=True)
    return reply


async def _withdraw(
    errand: Errand, progress: machine.Progress, move: machine.Enter, ended: Ended
) -> None:
    """The attempt fell short: keeps its text as a draft, and takes back what was shown."""
    trail = errand.trail
    # A whole answer of the small cloud model is a better draft than the edge's.
    better = ended.judgement is not None and move.attempt.target in CLOUD
    if ended.text and (better or not trail.draft):
        trail.draft, trail.draft_model_id = ended.text, ended.model_id
    if trail.first_text_at is not None:
        rest = errand.plan.attempts[progress.position :]
        await errand.sink.superseded(ended.reason, rest[0].target if rest else Target.FALLBACK)
        trail.first_text_at = None


def _span(move: machine.Enter) -> AbstractContextManager[trace.Span]:
    return _tracer.start_as_current_span(
        f"{names.SPAN_ATTEMPT} {move.attempt.level}",
        attributes={
            names.LEVEL: move.attempt.level,
            names.TARGET: move.attempt.target,
            names.REASON: move.attempt.reason,
            names.CAP_MS: round(move.cap_ms),
        },
        record_exception=False,
        set_status_on_exception=False,
    )
