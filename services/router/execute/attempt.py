"""Runs one attempt: opens its target, releases text, and says how it ended."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

from services.common.errors import Code, RemoteError
from services.common.vocabulary import AttemptOutcome, FallbackType, Reason, StreamMode, Target
from services.router.execute.judging import Judging
from services.router.execute.sink import Sink
from services.router.policy.judge import Judgement
from services.router.policy.recheck import Recheck
from services.router.policy.release import Release
from services.router.targets.base import Began, Done, Job, ModelEvent, ModelTarget, Piece
from tandem.common.v1 import chat_pb2

# A refusal of the request itself: another model may take it, and nobody is at fault.
_CAPABILITY_CODES = frozenset({Code.INVALID_ARGUMENT, Code.UNIMPLEMENTED})
# The tenant's own limits at the proxy say nothing of the provider's health.
_TENANT_REASONS = frozenset({"RATE_LIMITED", "BUDGET_SPENT"})
_REQUEST_CODES = _CAPABILITY_CODES | {Code.PERMISSION_DENIED}


class _TooSlow(Exception):
    """The second look says that the edge will be late."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended, with all that it made."""

    outcome: AttemptOutcome
    failure: FallbackType
    reason: Reason
    text: str = ""
    finish_reason: chat_pb2.FinishReason.ValueType = chat_pb2.FINISH_REASON_UNSPECIFIED
    model_id: str = ""
    standin: bool = False
    error_reason: str = ""
    usage: chat_pb2.Usage = field(default_factory=chat_pb2.Usage)
    tool_calls: tuple[chat_pb2.ToolCall, ...] = ()
    request_at_fault: bool = False
    """The target refused this request and would take others: its breaker must not count it."""
    judgement: Judgement | None = None
    """Of a judged answer."""


class AttemptRun:
    """One run of one attempt. Made, awaited once, thrown away."""

    def __init__(
        self,
        target: Target,
        model: ModelTarget,
        job: Job,
        release: Release,
        sink: Sink,
        clock: Callable[[], float],
        recheck: Recheck | None = None,
        judging: Judging | None = None,
    ) -> None:
        self._target = target
        self._model = model
        self._job = job
        self._release = release
        self._sink = sink
        self._clock = clock
        self._began = Began("")
        self._done: Done | None = None
        self._tokens = 0
        self._first_token_at = 0.0
        self._recheck = recheck
        self._judging = judging
        self._judgement: Judgement | None = None
        self.first_text_at: float | None = None

    async def run(self, cap_ms: float, final_ms: float) -> Ended:
        """Runs until whole, failed, or out of time.

        Args:
            cap_ms: Time until the commit point.
            final_ms: Time until the end, once text is committed.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            first_ms = min(cap_ms, self._silence_ms())
            async with asyncio.timeout_at(started + first_ms / 1000.0) as timer:
                async with self._model.open(self._job) as events:
                    ends = (started + cap_ms / 1000.0, started + final_ms / 1000.0)
                    await self._consume(events, timer, *ends)
        except TimeoutError:
            return self._fell_short(
                AttemptOutcome.TIMED_OUT, FallbackType.TIMEOUT, "ATTEMPT_TIMED_OUT"
            )
        except _TooSlow:
            return self._fell_short(AttemptOutcome.TIMED_OUT, FallbackType.TIMEOUT, "TOO_SLOW")
        except RemoteError as error:
            return self._refused(error)
        if self._done is None:
            return self._fell_short(
                AttemptOutcome.FAILED, FallbackType.UNAVAILABLE, "STREAM_ENDED_EARLY"
            )
        return await self._judge(self._done, (started + cap_ms / 1000.0 - loop.time()) * 1000.0)

    async def _consume(
        self,
        events: AsyncIterator[ModelEvent],
        timer: asyncio.Timeout,
        cap_at: float,
        final_at: float,
    ) -> None:
        extended = False
        async for event in events:
            if isinstance(event, Piece):
                if not self._first_token_at:
                    timer.reschedule(cap_at)
                self._tokens += event.tokens
                self._look_again()
                await self._show(self._release.feed(event.text, event.tokens))
                if self._release.committed and not extended:
                    timer.reschedule(final_at)
                    extended = True
            elif isinstance(event, Began):
                self._began = event
            else:
                self._done = event

    def _silence_ms(self) -> float:
        """How long the first token may take."""
        budget = self._job.ask.budget
        silence = None
        if self._recheck is not None:
            silence = self._recheck.silence_ms(budget.spent_ms(self._clock()), budget.granted_ms())
        return math.inf if silence is None else silence

    def _look_again(self) -> None:
        """Gives a slow edge up, once and only before the commit point."""
        now, budget = self._clock(), self._job.ask.budget
        self._first_token_at = self._first_token_at or now
        recheck = self._recheck
        if recheck is None or self._release.committed:
            return
        if recheck.due(budget.spent_ms(now), budget.granted_ms()):
            self._recheck = None
            decoding_ms = (now - self._first_token_at) * 1000.0
            if recheck.leave(self._tokens, decoding_ms, budget.remaining_ms(now)):
                raise _TooSlow

    async def _judge(self, done: Done, limit_ms: float) -> Ended:
        """The text is whole: keeps it if it fulfils its contract and is good enough.

        What was shown and committed already is kept in any case.
        """
        kept = bool(done.tool_calls) or self._job.ask.check(self._release.text)
        if not kept and not self._release.committed:
            return self._ended(
                AttemptOutcome.REJECTED,
                FallbackType.QUALITY,
                Reason.VALIDATION_FAILED,
                error_reason="CONTRACT_NOT_KEPT",
            )
        if self._judging is not None and not self._release.committed:
            text, model_id = self._release.text, self._began.model_id
            self._judgement = await self._judging.verdict(done, model_id, text, limit_ms)
            if not self._judgement.kept:
                return self._ended(
                    AttemptOutcome.REJECTED,
                    FallbackType.QUALITY,
                    self._judgement.reason,
                    error_reason=f"BAND_{self._judgement.band.upper()}",
                )
        await self._show(self._release.accept())
        return self._ended(AttemptOutcome.ACCEPTED, FallbackType.NONE, Reason.DEFAULT)

    async def _show(self, text: str) -> None:
        if not text:
            return
        if self.first_text_at is None:
            self.first_text_at = self._clock()
        await self._sink.chunk(text, self._target, committed=self._release.committed)

    def _refused(self, error: RemoteError) -> Ended:
        if error.remote_code is Code.DEADLINE_EXCEEDED:
            return self._fell_short(
                AttemptOutcome.TIMED_OUT, FallbackType.TIMEOUT, error.remote_reason
            )
        kind = FallbackType.UNAVAILABLE
        if error.remote_code in _CAPABILITY_CODES and self._target is Target.EDGE:
            kind = FallbackType.CAPABILITY
        ended = self._fell_short(AttemptOutcome.FAILED, kind, error.remote_reason)
        theirs = error.remote_code in _REQUEST_CODES or error.remote_reason in _TENANT_REASONS
        return replace(ended, request_at_fault=theirs)

    def _fell_short(
        self, outcome: AttemptOutcome, failure: FallbackType, error_reason: str
    ) -> Ended:
        """After the commit point what was shown stays, marked; before it nothing was."""
        if self._release.committed:
            return self._ended(
                AttemptOutcome.PARTIAL,
                failure,
                self._reason(failure),
                error_reason=error_reason,
                finish_reason=chat_pb2.FINISH_REASON_INTERRUPTED,
            )
        return self._ended(outcome, failure, self._reason(failure), error_reason=error_reason)

    def _reason(self, failure: FallbackType) -> Reason:
        if failure is FallbackType.TIMEOUT:
            return Reason.LATENCY_PRESSURE
        if failure is FallbackType.CAPABILITY:
            return Reason.CAPABILITY_MISS
        edge = self._target is Target.EDGE
        return Reason.EDGE_UNAVAILABLE if edge else Reason.UPSTREAM_FAILED

    def _ended(
        self,
        outcome: AttemptOutcome,
        failure: FallbackType,
        reason: Reason,
        *,
        error_reason: str = "",
        finish_reason: chat_pb2.FinishReason.ValueType | None = None,
    ) -> Ended:
        done = self._done
        usage = done.usage if done else chat_pb2.Usage(output_tokens=self._tokens, estimated=True)
        whole = done.finish_reason if done else chat_pb2.FINISH_REASON_INTERRUPTED
        text = self._release.text
        if outcome is AttemptOutcome.PARTIAL:
            text = text[: self._release.shown_chars]
        return Ended(
            outcome=outcome,
            failure=failure,
            reason=reason,
            text=text,
            finish_reason=whole if finish_reason is None else finish_reason,
            model_id=self._began.model_id,
            standin=self._began.standin,
            error_reason=error_reason,
            usage=usage,
            tool_calls=done.tool_calls if done else (),
            judgement=self._judgement,
        )


def release_for(mode: StreamMode, commit_tokens: int, *, judged: bool) -> Release:
    """Text of an answer that is judged afterwards is held (or provisional) until judged."""
    if judged and mode is StreamMode.COMMIT:
        mode = StreamMode.HOLD
    return Release(mode, commit_tokens)
