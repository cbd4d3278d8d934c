"""The router's spine: enter → screen → decide → execute → record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from opentelemetry import trace

from services.common.errors import TandemError
from services.common.pii.span import PiiDetector
from services.common.telemetry import names
from services.common.vocabulary import FallbackType, Reason
from services.router.ask import Ask
from services.router.execute.executor import Errand, Executor
from services.router.execute.sink import Sink
from services.router.execute.trail import Reply, Trail
from services.router.gather import Gatherer
from services.router.policy.decide import decide
from services.router.policy.facts import MODELS, Facts
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

    async def answer(self, ask: Ask, policy: VersionedPolicy, sink: Sink) -> tuple[Reply, Trail]:
        """Answers one request; leaves exactly one record, whatever happens."""
        trail = Trail()
        try:
            facts, plan = self.plan(ask, policy, trail)
            await sink.decided(plan)
            reply = await self.executor.run(Errand(ask, facts, policy.policy, plan, sink, trail))
            trail.reply, trail.ended = reply, "ANSWERED"
            self._remember(ask, plan, reply)
            return reply, trail
        except asyncio.CancelledError:
            over = ask.budget.remaining_ms(self.clock()) <= 0
            trail.ended = "DEADLINE" if over else "CANCELLED"
            raise
        except TandemError as error:
            trail.ended = error.reason
            raise
        finally:
            self.recorder.record(ask, trail, policy.version, self.clock())

    def _remember(self, ask: Ask, plan: Plan, reply: Reply) -> None:
        """Binds the session to the target that served, where the decision was free to choose."""
        forced = plan.reason is Reason.PII_PIN or plan.fallback_type in _FORCED
        if reply.target in MODELS and not forced:
            key = SessionKey(ask.tenant.name, ask.session_id)
            sessions = self.gatherer.sessions
            sessions.note(key, plan.current_score, reply.target, self.clock())

    def plan(self, ask: Ask, policy: VersionedPolicy, trail: Trail) -> tuple[Facts, Plan]:
        """Screens, gathers and decides; calls no model."""
        started = self.clock()
        with _tracer.start_as_current_span(names.SPAN_SCREEN) as span:
            screening = screen(ask.request, self.detector)
            span.set_attribute(names.PII_TYPES, ",".join(screening.kinds))
        screened = self.clock()
        with _tracer.start_as_current_span(names.SPAN_DECIDE) as span:
            facts = self.gatherer.facts(ask, screening, policy.policy, screened)
            plan = decide(facts, policy.policy, screened)
            for step in plan.steps:
                if step.reason is not None:
                    span.add_event(step.step, {"verdict": step.verdict, "reason": step.reason})
            span.set_attribute(names.REASON, plan.reason)
        trail.facts, trail.plan = facts, plan
        trail.stage_ms["screen"] = (screened - started) * 1000.0
        trail.stage_ms["decide"] = (self.clock() - screened) * 1000.0
        return facts, plan
