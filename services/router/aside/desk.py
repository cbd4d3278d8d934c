"""Decides what runs after a reply, runs it, and keeps what came of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from opentelemetry import trace
from opentelemetry.trace import Link

from services.common.deadline import Budget
from services.common.telemetry import names
from services.common.vocabulary import Level, StreamMode
from services.router import convert
from services.router.aside.compare import compare
from services.router.aside.probes import ProbeTimes
from services.router.aside.queue import AsideQueue
from services.router.aside.results import LateResults
from services.router.ask import Ask
from services.router.execute.executor import Errand, Executor
from services.router.execute.sink import SilentSink
from services.router.execute.trail import Reply, Trail
from services.router.policy.aside import late_plan, only, probe_targets, shadow_plan
from services.router.policy.facts import CLOUD
from services.router.policy.plan import Plan
from services.router.policy_store import VersionedPolicy
from tandem.router.v1 import router_pb2

_tracer = trace.get_tracer("tandem.router")
SHADOW, LATE, PROBE = "shadow", "late", "probe"


class AsideRecorder(Protocol):
    """The recorder, as far as runs aside need it."""

    def aside(
        self, ask: Ask, trail: Trail, version: str, now: float, arm: str, shadow: dict[str, Any]
    ) -> None:
        """Leaves one row of its own, marked by `arm`."""


@dataclass(frozen=True, slots=True)
class AsideDesk:
    """One for the process."""

    queue: AsideQueue
    results: LateResults
    executor: Executor
    recorder: AsideRecorder
    clock: Callable[[], float]
    draw: Callable[[], float] = random.random
    probes: ProbeTimes = field(default_factory=ProbeTimes)

    def after(self, ask: Ask, policy: VersionedPolicy, trail: Trail, reply: Reply) -> None:
        """Called once a reply stands; returns at once. Never called for a cancelled call."""
        facts, plan, rules = trail.facts, trail.plan, policy.policy
        if facts is None or plan is None:
            return
        shadow = shadow_plan(facts, rules, plan, reply.target, self.draw())
        if shadow is not None and not reply.tool_calls:
            self.queue.offer(self._shadow(ask, policy, trail, reply, shadow))
        elif not reply.tool_calls:
            self._probe(ask, policy, trail, reply)
        late = late_plan(facts, rules, plan, reply.level)
        if late is not None:
            self.results.expect(ask.tenant.name, ask.request_id, rules.late.ttl_s)
            if not self.queue.offer(self._late(ask, policy, trail, late)):
                self.results.none(ask.tenant.name, ask.request_id)

    def _shadow(
        self, ask: Ask, policy: VersionedPolicy, trail: Trail, reply: Reply, plan: Plan
    ) -> Any:
        link = _link()

        async def run() -> None:
            own, other, made = await self._run(
                ask, policy, trail, plan, policy.policy.shadow.budget_ms, link, SHADOW
            )
            if made.level is not Level.L4:
                found = compare(ask.request, reply.text, made.text)
                told = {
                    "served": reply.target,
                    "other": made.target,
                    "by": found.by,
                    "agreement": round(found.agreement, 4),
                }
                self.recorder.aside(own, other, policy.version, self.clock(), SHADOW, told)

        return run

    def _probe(self, ask: Ask, policy: VersionedPolicy, trail: Trail, reply: Reply) -> None:
        """Asks the slow targets that are due; a shadow run is a probe already."""
        assert trail.facts is not None and trail.plan is not None
        rules = policy.policy
        slow = probe_targets(trail.facts, rules, trail.plan, reply.target, ask.budget.granted_ms())
        for target in slow:
            if self.probes.due(target, rules.latency.probe_every_s, self.clock()):
                self.queue.offer(self._probing(ask, policy, trail, only(trail.plan, [target])))

    def _probing(self, ask: Ask, policy: VersionedPolicy, trail: Trail, plan: Plan) -> Any:
        link = _link()

        async def run() -> None:
            budget_ms = policy.policy.latency.probe_budget_ms
            own, other, made = await self._run(ask, policy, trail, plan, budget_ms, link, PROBE)
            now = self.clock()
            if made.target in CLOUD:
                took_ms = other.attempts[-1].duration_ms
                self.executor.cloud_latency.probed(made.target, took_ms, now)
            self.recorder.aside(own, other, policy.version, now, PROBE, {})

        return run

    def _late(self, ask: Ask, policy: VersionedPolicy, trail: Trail, plan: Plan) -> Any:
        link, rules = _link(), policy.policy.late

        async def run() -> None:
            tenant = ask.tenant.name
            try:
                own, other, made = await self._run(
                    ask, policy, trail, plan, rules.budget_ms, link, LATE
                )
            except BaseException:
                self.results.none(tenant, ask.request_id)
                raise
            if made.level is Level.L4:
                self.results.none(tenant, ask.request_id)
                return
            now = self.clock()
            self.recorder.aside(own, other, policy.version, now, LATE, {})
            outcome = convert.outcome(own, made, other, policy.version, now)
            response = router_pb2.RouteResponse(
                request_id=ask.request_id,
                text=made.text,
                tool_calls=made.tool_calls,
                outcome=outcome,
            )
            self.results.ready(tenant, ask.request_id, rules.ttl_s, response)

        return run

    async def _run(
        self,
        ask: Ask,
        policy: VersionedPolicy,
        trail: Trail,
        plan: Plan,
        budget_ms: int,
        link: list[Link],
        arm: str,
    ) -> tuple[Ask, Trail, Reply]:
        """Runs a plan in a trace of its own, linked to the request's, on a budget of its own."""
        assert trail.facts is not None
        now = self.clock()
        budget = Budget(budget_ms, 0, now, now + budget_ms / 1000.0)
        own = replace(ask, budget=budget, mode=StreamMode.HOLD)
        facts = replace(trail.facts, expires_at=budget.expires_at)
        other = Trail(facts=facts, plan=plan)
        errand = Errand(own, facts, policy.policy, plan, SilentSink(), other)
        with _tracer.start_as_current_span(
            f"{names.SPAN_ASIDE} {arm}", context=trace.set_span_in_context(trace.INVALID_SPAN),
            links=link,
        ):  # fmt: skip
            reply = await self.executor.run(errand)
        other.reply, other.ended = reply, "ANSWERED"
        return own, other, reply


def _link() -> list[Link]:
    return [Link(trace.get_current_span().get_span_context())]
