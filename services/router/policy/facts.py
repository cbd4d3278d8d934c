"""The snapshot that a decision is made from: frozen, and without text of the request.

Without text it can be logged, kept in the ledger and replayed later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from services.common.vocabulary import Target

CLOUD = frozenset({Target.CLOUD_SMALL, Target.CLOUD_LARGE})
MODELS = CLOUD | {Target.EDGE}


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """What the words of a request show.

    Attributes:
        input_chars: Characters of all text, system and examples included.
        input_tokens: Estimated prompt tokens on the edge tokenizer.
        few_shot_tokens: Of these, the examples'.
        asks_reasoning: The whole conversation asks for reasoning somewhere.
        computes_amounts: An amount is to be computed.
        wants_live: Live information is asked for.
        has_code: A code block is present.
        best_snippet_score: Highest retrieval score; None without snippets.
        follows_up: The last turn only carries on ("yes, do it").
    """

    input_chars: int
    input_tokens: int
    few_shot_tokens: int = 0
    asks_reasoning: bool = False
    computes_amounts: bool = False
    wants_live: bool = False
    has_code: bool = False
    cloud_keyword: bool = False
    edge_keyword: bool = False
    best_snippet_score: float | None = None
    follows_up: bool = False


@dataclass(frozen=True, slots=True)
class Screening:
    """What the detector found: kinds, never values. A detector that failed counts as PII."""

    kinds: tuple[str, ...] = ()
    failed: bool = False

    @property
    def has_pii(self) -> bool:
        """True where the request must be treated as private."""
        return self.failed or bool(self.kinds)


@dataclass(frozen=True, slots=True)
class EdgeFacts:
    """The edge worker as last reported. `ttft_ms` includes queueing."""

    up: bool
    context_tokens: int
    ttft_ms: float
    tpot_ms: float
    breaker_open: bool = False

    @property
    def usable(self) -> bool:
        """Up, and its breaker lets calls through."""
        return self.up and not self.breaker_open

    def eta_ms(self, output_tokens: int) -> float:
        """Time to a whole answer: TTFT + tokens × TPOT (design, section 4, step 6)."""
        return self.ttft_ms + output_tokens * self.tpot_ms


@dataclass(frozen=True, slots=True)
class CloudFacts:
    """One cloud tier. `eta_ms` is the p90 of the last five minutes, or the prior."""

    eta_ms: float
    breaker_open: bool = False

    @property
    def usable(self) -> bool:
        """Its breaker lets calls through."""
        return not self.breaker_open


@dataclass(frozen=True, slots=True)
class ComplexityFacts:
    """What the small models say of the conversation; None where one is missing or failed.

    Attributes:
        probability: P(strong model needed), calibrated.
        simple: Cosine to the nearest example of a simple request.
        complex: The same, of a complex one.
        edge_pass_rate: Share of the edge's last answers to this task that were accepted.
    """

    probability: float | None = None
    simple: float | None = None
    complex: float | None = None
    edge_pass_rate: float | None = None


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What is remembered of a session: scores, oldest first, and where its last turn went."""

    scores: tuple[float, ...] = ()
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything `decide` may look at."""

    task_type: str
    features: TextFeatures
    screening: Screening
    pin_pii: bool
    permitted: frozenset[Target]
    """Model targets that tenant, channel and caller leave; never empty."""
    edge: EdgeFacts
    cloud: Mapping[Target, CloudFacts]
    expires_at: float
    """Monotonic seconds at which the budget is used up."""
    ttft_budget_ms: float
    max_output_tokens: int
    """The caller's cap on the answer; 0 where none was given."""
    tools: tuple[str, ...] = ()
    keep_on_edge: bool = False
    cost_share: float = 0.0
    """Share of the tenant's daily ceiling that is spent; 0 without a ceiling."""
    shed: bool = False
    """The router is overloaded and this channel has low priority."""
    complexity: ComplexityFacts = ComplexityFacts()
    session: SessionFacts = SessionFacts()
    usual_output_tokens: int | None = None
    """What answers to the task lately had, from the records; None while there are too few."""

    def remaining_ms(self, now: float) -> float:
        """Milliseconds of the budget left at `now`, monotonic seconds."""
        return max(0.0, (self.expires_at - now) * 1000.0)

    def expected_output_tokens(self, prior: int) -> int:
        """Tokens to expect: by the records, else the policy's `prior`; within the caller's cap."""
        usual = prior if self.usual_output_tokens is None else self.usual_output_tokens
        return self.capped(usual)

    def capped(self, tokens: int) -> int:
        """`tokens`, within the caller's cap."""
        return min(tokens, self.max_output_tokens) if self.max_output_tokens else tokens
