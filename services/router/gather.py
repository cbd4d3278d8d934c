"""Takes the snapshot that a decision is made from."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from services.common.vocabulary import Target
from services.router.ask import Ask
from services.router.assess import Assessor
from services.router.config import LoadSettings
from services.router.policy.config import Policy
from services.router.policy.decide import needs_score
from services.router.policy.facts import MODELS, Facts, Screening
from services.router.policy.features import Texts, features_of
from services.router.state.breakers import Breakers
from services.router.state.cloud_latency import CloudLatency
from services.router.state.edge_load import EdgeLoad
from services.router.state.edge_quality import EdgeQuality
from services.router.state.lengths import OutputLengths
from services.router.state.load import Load
from services.router.state.sessions import MemorySessions, SessionKey, SessionStore
from services.router.state.spend import Spend
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2

_TIERS = {
    router_pb2.TIER_PREFERENCE_UNSPECIFIED: MODELS,
    router_pb2.TIER_PREFERENCE_EDGE_ONLY: frozenset({Target.EDGE}),
    router_pb2.TIER_PREFERENCE_UP_TO_CLOUD_SMALL: frozenset({Target.EDGE, Target.CLOUD_SMALL}),
}


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Reads request and live state into `Facts`."""

    edge_load: EdgeLoad
    cloud_latency: CloudLatency
    breakers: Breakers
    sessions: SessionStore = field(default_factory=MemorySessions)
    assessor: Assessor = field(default_factory=lambda: Assessor(None, None))
    quality: EdgeQuality = field(default_factory=EdgeQuality)
    lengths: OutputLengths = field(default_factory=OutputLengths)
    load: Load = field(default_factory=lambda: Load(LoadSettings(), time.monotonic))
    spend: Spend = field(default_factory=lambda: Spend(time.time))

    def facts(self, ask: Ask, screening: Screening, policy: Policy, now: float) -> Facts:
        """The facts of `ask` at `now`, monotonic seconds; small models are asked if need be."""
        facts = self._plain(ask, screening, policy, now)
        if not needs_score(facts, policy, now):
            return facts
        rate = self.quality.pass_rate(facts.task_type)
        return replace(facts, complexity=self.assessor.facts(ask.vector, policy.complexity, rate))

    def _plain(self, ask: Ask, screening: Screening, policy: Policy, now: float) -> Facts:
        request = ask.request
        edge = self.edge_load.facts(policy.latency, policy.edge_context_tokens)
        cloud = self.cloud_latency.facts(policy.latency, now)
        return Facts(
            task_type=ask.task_type,
            features=features_of(_texts(request), policy.words),
            screening=screening,
            pin_pii=ask.tenant.pii == "pin",
            permitted=frozenset(ask.tenant.targets) & _TIERS[request.tier_preference],
            edge=replace(edge, breaker_open=self.breakers.open(Target.EDGE, now)),
            cloud={
                target: replace(tier, breaker_open=self.breakers.open(target, now))
                for target, tier in cloud.items()
            },
            expires_at=ask.budget.expires_at,
            ttft_budget_ms=float(request.ttft_budget_ms or ask.tenant.default_ttft_ms),
            max_output_tokens=request.max_output_tokens,
            tools=tuple(tool.name for tool in request.tools),
            keep_on_edge=request.privacy_hint == router_pb2.PRIVACY_HINT_KEEP_ON_EDGE,
            cost_share=self.spend.share(ask.tenant.name, ask.tenant.daily_ceiling_usd),
            shed=self.load.sheds(ask.channel),
            session=self.sessions.facts(SessionKey(ask.tenant.name, ask.session_id), now),
            usual_output_tokens=self.lengths.usual(ask.task_type),
        )


def _texts(request: router_pb2.RouteRequest) -> Texts:
    user = chat_pb2.ROLE_USER
    return Texts(
        asked=[turn.content for turn in request.messages if turn.role == user],
        others=[
            *(turn.content for turn in request.messages if turn.role != user),
            request.system,
            *request.slots.values(),
            *(snippet.text for snippet in request.snippets),
        ],
        few_shot=[turn.content for turn in request.few_shot],
        snippet_scores=[snippet.score for snippet in request.snippets],
    )
