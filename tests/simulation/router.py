"""The router's mind in virtual time: facts, plan, state machine, breakers, measured latencies."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from services.common.breaker import Breaker, BreakerSettings
from services.common.vocabulary import AttemptOutcome, FallbackType, Level, Reason, Target
from services.router.policy import machine
from services.router.policy.config import Policy
from services.router.policy.decide import decide
from services.router.policy.facts import (
    CLOUD,
    MODELS,
    ComplexityFacts,
    EdgeFacts,
    Facts,
    Screening,
    SessionFacts,
    TextFeatures,
)
from services.router.policy.plan import Plan
from services.router.state.cloud_latency import CloudLatency
from tests.simulation.edge import check

_SERVED = (AttemptOutcome.ACCEPTED, AttemptOutcome.PARTIAL)


@dataclass(slots=True)
class Tier:
    """A target as it really is for a while; the router only sees what it measures."""

    up: bool = True
    answer_ms: float = 800.0
    until: float = 0.0

    def live(self, rng: random.Random, now: float) -> None:
        """Changes after some time: mostly well, at times slow or dead."""
        if now < self.until:
            return
        self.until = now + rng.expovariate(1.0 / 20.0)
        self.up = rng.random() < 0.85
        self.answer_ms = rng.choice([200.0, 800.0, 2_000.0, 20_000.0])


@dataclass
class RouterRun:
    """One run from one seed. `ends` counts levels served; `missed` canned while a tier was well."""

    rng: random.Random
    requests: int
    policies: tuple[Policy, ...]
    now: float = 1_000.0
    ends: Counter[str] = field(default_factory=Counter)
    missed: int = 0
    steps: int = 0

    def __post_init__(self) -> None:
        self.tiers = {target: Tier() for target in sorted(MODELS)}
        self.latency = CloudLatency()
        self.breakers = {
            target: Breaker(target, BreakerSettings(failure_share=0.2, cool_s=5.0))
            for target in self.tiers
        }

    def run(self) -> RouterRun:
        """All requests, one after the other in virtual time."""
        for _ in range(self.requests):
            self.now += self.rng.expovariate(5.0)
            for tier in self.tiers.values():
                tier.live(self.rng, self.now)
            self._request()
        return self

    def _request(self) -> None:
        policy, facts = self.rng.choice(self.policies), self._facts()
        arrived = self.now
        plan = decide(facts, policy, self.now)
        check(plan == decide(facts, policy, self.now), "the same facts, another plan", facts)
        targets = {attempt.target for attempt in plan.attempts} | ({plan.shadow} - {None})
        check(targets <= facts.permitted, "a target that is not permitted", targets)
        pinned = facts.keep_on_edge or facts.screening.failed
        pinned |= facts.pin_pii and facts.screening.has_pii
        check(not pinned or targets <= {Target.EDGE}, "a pinned request may leave", facts)
        level = self._walk(facts, policy, plan)
        self.ends[level] += 1
        spent = self.now - arrived
        check(self.now <= facts.expires_at + 1e-6, "past the deadline", spent, facts.expires_at)
        self.now = arrived

    def _walk(self, facts: Facts, policy: Policy, plan: Plan) -> str:
        progress = machine.begin(plan)
        estimates = machine.estimates_of(facts, plan.expected_output_tokens)
        last = -1
        for _ in range(len(plan.attempts) + 1):
            self.steps += 1
            remaining = facts.remaining_ms(self.now)
            move = machine.next_move(progress, policy, remaining, estimates)
            if isinstance(move, machine.Served):
                return str(plan.attempts[last].level)
            if isinstance(move, machine.LastResort):
                check(move.fallback_type is not FallbackType.NONE, "no reason for the end", move)
                self._note_miss(facts, remaining)
                return str(Level.L4)
            check(move.index > last, "the index does not rise", move)
            last = move.index
            check(0 < move.cap_ms <= remaining - policy.caps.reserve_ms, "cap too large", move)
            permit = None
            if isinstance(move, machine.Enter):
                permit = self.breakers[move.attempt.target].admit(self.now)
                if permit is None:
                    move = machine.Skip(
                        move.index, move.attempt, move.cap_ms, move.eta_ms, Reason.BREAKER_OPEN
                    )
            if isinstance(move, machine.Skip) or permit is None:
                assert isinstance(move, machine.Skip)
                progress = progress.skipped(move)
                continue
            outcome, failure = self._attempt(move)
            failed = failure in (FallbackType.UNAVAILABLE, FallbackType.TIMEOUT)
            (permit.failed if failed else permit.succeeded)(self.now)
            hopeless = self.rng.random() < 0.1
            progress = progress.after(move, outcome, failure, Reason.DEFAULT, hopeless=hopeless)
        check(progress.served, "the walk does not end", plan)
        return str(plan.attempts[last].level)

    def _attempt(self, move: machine.Enter) -> tuple[AttemptOutcome, FallbackType]:
        target = move.attempt.target
        tier = self.tiers[target]
        taken_ms = tier.answer_ms * self.rng.uniform(0.5, 1.5)
        if not tier.up:
            self.now += min(move.cap_ms, self.rng.choice([1.0, 30.0, 1e9])) / 1000.0
            return AttemptOutcome.FAILED, FallbackType.UNAVAILABLE
        self.now += min(move.cap_ms, taken_ms) / 1000.0
        if taken_ms > move.cap_ms:
            partial = self.rng.random() < 0.2
            outcome = AttemptOutcome.PARTIAL if partial else AttemptOutcome.TIMED_OUT
            return outcome, FallbackType.TIMEOUT
        if target is Target.EDGE and self.rng.random() < 0.15:
            return AttemptOutcome.REJECTED, FallbackType.QUALITY
        if target in CLOUD:
            self.latency.took(target, taken_ms, self.now)
        return AttemptOutcome.ACCEPTED, FallbackType.NONE

    def _note_miss(self, facts: Facts, remaining_ms: float) -> None:
        """A tier that is well, permitted and fast enough was there, with most of the time left."""
        pinned = facts.keep_on_edge or facts.screening.has_pii
        for target in facts.permitted if not pinned else facts.permitted & {Target.EDGE}:
            tier, closed = self.tiers[target], self.breakers[target].would_admit(self.now)
            if tier.up and closed and tier.answer_ms * 1.5 < 0.5 * remaining_ms:
                self.missed += 1
                return

    def _facts(self) -> Facts:
        rng, edge = self.rng, self.tiers[Target.EDGE]
        default = self.policies[0]
        cloud = {
            target: replace(each, breaker_open=not self.breakers[target].would_admit(self.now))
            for target, each in self.latency.facts(default.latency, self.now).items()
        }
        budget_s = rng.choice([3.0, 8.0, 60.0]) if rng.random() < 0.9 else rng.choice([0.01, 0.3])
        return Facts(
            task_type=rng.choice([*default.capabilities, "unknown"]),
            features=self._features(),
            screening=Screening(rng.choice([(), (), ("PHONE",)]), failed=rng.random() < 0.02),
            pin_pii=rng.random() < 0.8,
            permitted=frozenset(rng.sample(sorted(MODELS), rng.choice([1, 2, 3, 3, 3]))),
            edge=EdgeFacts(
                up=edge.up or rng.random() < 0.2,
                context_tokens=rng.choice([512, 8_192]),
                ttft_ms=edge.answer_ms * rng.uniform(0.05, 1.0),
                tpot_ms=rng.uniform(0.0, 40.0),
                breaker_open=not self.breakers[Target.EDGE].would_admit(self.now),
            ),
            cloud=cloud,
            expires_at=self.now + budget_s,
            ttft_budget_ms=800.0,
            max_output_tokens=rng.choice([0, 16, 256, 2_048]),
            tools=rng.choice([(), (), ("a",), ("a", "b")]),
            keep_on_edge=rng.random() < 0.05,
            complexity=ComplexityFacts(
                probability=rng.choice([None, rng.random()]),
                simple=rng.uniform(-1, 1),
                complex=rng.uniform(-1, 1),
                edge_pass_rate=rng.choice([None, rng.random()]),
            ),
            session=SessionFacts(
                scores=tuple(rng.uniform(1, 10) for _ in range(rng.randint(0, 2))),
                target=rng.choice([None, *sorted(MODELS)]),
            ),
        )

    def _features(self) -> TextFeatures:
        rng = self.rng
        tokens = int(rng.lognormvariate(4.0, 1.5))
        odd = [rng.random() < 0.1 for _ in range(7)]
        return TextFeatures(
            input_chars=4 * tokens,
            input_tokens=tokens,
            few_shot_tokens=rng.choice([0, 0, tokens // 2]),
            asks_reasoning=odd[0],
            computes_amounts=odd[1],
            wants_live=odd[2],
            has_code=odd[3],
            cloud_keyword=odd[4],
            edge_keyword=odd[5],
            best_snippet_score=rng.choice([None, rng.random()]),
            follows_up=odd[6],
        )
