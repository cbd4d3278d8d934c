"""The router's spine: enter → screen → look → decide → execute → record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry import trace

from services.common.errors import TandemError
from services.common.pii.span import PiiDetector
from services.common.telemetry import names
from services.common.vocabulary import FallbackType, Reason, Target
from services.router.aside.desk import AsideDesk
from services.router.ask import Ask
from services.router.cache.desk import CacheDesk, Look
from services.router.cache.entry import serve_hit
from services.router.cache.key import key_of
from services.router.execute.executor import Errand, Executor
from services.router.execute.sink import Sink
from services.router.execute.trail import Reply, Trail
from services.router.gather import Gatherer
from services.router.policy.decide import decide
from services.router.policy.facts import MODELS, Facts, Screening
from services.router.policy.plan import Plan
from services.router.policy_store import VersionedPolicy
from services.router.record import Recorder
from services.router.screen import screen
from services.router.state.sessions import SessionKey

# The session must not follow a target that was only taken because another was down or slow.
_FORCED = frozenset({FallbackType.UNAVAILABLE, FallbackType.TIMEOUT})

_tracer = trace.get_tracer("tandem.router")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Answers requests. Holds no state of its own."""

    detector: PiiDetector
    gatherer: Gatherer
    executor: Executor
    recorder: Recorder
    clock: Callable[[], float]
    cache: CacheDesk | None = None
    aside: AsideDesk | None = None

    async def answer(self, ask: Ask, policy: VersionedPolicy, sink: Sink) -> tuple[Reply, Trail]:
        """Answers one request; leaves exactly one record, whatever happens."""
        trail, look = Trail(), Look()
        try:
            with self.gatherer.load.counted(ask.tenant):
                screening = self._screen(ask, trail)
                look = await self._look(ask, screening, policy, trail)
                reply = await self._reply(ask, screening, policy, sink, trail, look)
            trail.reply, trail.ended = reply, "ANSWERED"
            if self.aside is not None:
                self.aside.after(ask, policy, trail, reply)
            return reply, trail
        except asyncio.CancelledError:
            over = ask.budget.remaining_ms(self.clock()) <= 0
            trail.ended = "DEADLINE" if over else "CANCELLED"
            raise
        except TandemError as error:
            trail.ended = error.reason
            raise
        finally:
            if self.cache is not None:
                self.cache.done(ask, look, trail.reply)
            self.gatherer.spend.note(ask.tenant.name, trail.usage().cost_micro_usd)
            self.recorder.record(ask, trail, policy.version, self.clock())

    async def _reply(
        self,
        ask: Ask,
        screening: Screening,
        policy: VersionedPolicy,
        sink: Sink,
        trail: Trail,
        look: Look,
    ) -> Reply:
        if look.hit is not None:
            return await serve_hit(*look.hit, ask, sink, trail, self.clock())
        facts, plan = self._decide(ask, screening, policy, trail)
        await sink.decided(plan)
        reply = await self.executor.run(Errand(ask, facts, policy.policy, plan, sink, trail))
        self._remember(ask, plan, reply)
        return reply

    def _remember(self, ask: Ask, plan: Plan, reply: Reply) -> None:
        """Binds the session to the target that served, where the decision was free to choose."""
        forced = plan.reason is Reason.PII_PIN or plan.fallback_type in _FORCED
        if reply.target in MODELS and not forced:
            key = SessionKey(ask.tenant.name, ask.session_id)
            sessions = self.gatherer.sessions
            sessions.note(key, plan.current_score, reply.target, self.clock())

    def plan(self, ask: Ask, policy: VersionedPolicy, trail: Trail) -> tuple[Facts, Plan]:
        """Screens, gathers and decides; looks into no cache and calls no model."""
        return self._decide(ask, self._screen(ask, trail), policy, trail)

    def _screen(self, ask: Ask, trail: Trail) -> Screening:
        with (
            _tracer.start_as_current_span(names.SPAN_SCREEN) as span,
            _timed(self, trail, "screen"),
        ):
            screening = screen(ask.request, self.detector)
            span.set_attribute(names.PII_TYPES, ",".join(screening.kinds))
        return screening

    async def _look(
        self, ask: Ask, screening: Screening, policy: VersionedPolicy, trail: Trail
    ) -> Look:
        """Stored answers, where the request may touch them at all."""
        key = key_of(ask, screening, policy) if self.cache is not None else None
        if self.cache is None or key is None:
            return Look()
        patience_ms = policy.policy.cache.wait_share * ask.budget.remaining_ms(self.clock())
        with _tracer.start_as_current_span(names.SPAN_LOOK) as span, _timed(self, trail, "look"):
            look = await self.cache.look(ask, key, patience_ms)
            span.set_attribute(names.REASON, look.hit[1] if look.hit else "")
        trail.stale = look.stale.stale if look.stale else None
        return look

    def _decide(
        self, ask: Ask, screening: Screening, policy: VersionedPolicy, trail: Trail
    ) -> tuple[Facts, Plan]:
        with (
            _tracer.start_as_current_span(names.SPAN_DECIDE) as span,
            _timed(self, trail, "decide"),
        ):
            now = self.clock()
            facts = self.gatherer.facts(ask, screening, policy.policy, now)
            plan = decide(facts, policy.policy, now)
            if ask.candidate is not None:
                trail.candidate = self._would(ask, screening, ask.candidate, now)
            for step in plan.steps:
                if step.reason is not None:
                    span.add_event(step.step, {"verdict": step.verdict, "reason": step.reason})
            span.set_attribute(names.REASON, plan.reason)
        trail.facts, trail.plan = facts, plan
        return facts, plan

    def _would(
        self, ask: Ask, screening: Screening, candidate: VersionedPolicy, now: float
    ) -> dict[str, str]:
        """What another policy would do, for the ledger."""
        facts = self.gatherer.facts(ask, screening, candidate.policy, now)
        plan = decide(facts, candidate.policy, now)
        first = plan.first
        return {
            "policy_version": candidate.version,
            "target": first.target if first else Target.FALLBACK,
            "reason": plan.reason,
        }


@contextmanager
def _timed(pipeline: Pipeline, trail: Trail, stage: str) -> Iterator[None]:
    """Keeps the time of a stage, milliseconds."""
    started = pipeline.clock()
    yield
    trail.stage_ms[stage] = (pipeline.clock() - started) * 1000.0
