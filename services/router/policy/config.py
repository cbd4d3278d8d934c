"""The policy file, typed. Defaults are the shipped policy; `config/policy.yaml` comments them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from services.common.confidence.thresholds import Thresholds
from services.common.settings import Settings
from services.common.vocabulary import StreamMode
from services.router.policy.after_reply import Late, Shadow
from services.router.policy.cache import CachePolicy
from services.router.policy.payload import PayloadPolicy

Support = Literal["yes", "no", "partial"]
PinnedInDoubt = Literal["ask_back", "draft"]
OnLargeTimeout = Literal["next_level", "quick_edge", "edge_draft"]


class CapabilityRow(Settings):
    """What the edge model may do for one task type."""

    edge: Support
    max_input_tokens: int = Field(default=2_000, ge=1)
    max_output_tokens: int = Field(default=300, ge=1)
    expected_output_tokens: int = Field(default=64, ge=1)
    """Tokens an answer is assumed to have until the records tell; for estimates."""


class Caps(Settings):
    """Share of the remaining budget (less the reserve) that each level may use."""

    l0: float = Field(default=0.7, gt=0, le=1)
    l1: float = Field(default=0.3, gt=0, le=1)
    l2: float = Field(default=0.5, gt=0, le=1)
    l3: float = Field(default=0.8, gt=0, le=1)
    reserve_ms: int = Field(default=50, ge=10)
    """Kept back for L4; with less than this left, L4 answers at once."""


class TrivialRule(Settings):
    """Bounds under which a plain request goes to the edge."""

    max_input_chars: int = 512
    max_input_tokens: int = 128
    max_output_tokens: int = 64


class WordLists(Settings):
    """Phrases that mark a kind of request; matched without case, English as whole words."""

    amounts: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    cloud_keywords: tuple[str, ...] = ()
    edge_keywords: tuple[str, ...] = ()
    follow_ups: tuple[str, ...] = ()
    """Turns that only carry on what was said before; matched at the start of a short turn."""


class LatencyPolicy(Settings):
    """How estimates meet the budget."""

    edge_share: float = Field(default=0.9, gt=0, le=1)
    """The edge is taken while its ETA fits this share of what remains."""
    recheck_share: float = Field(default=0.3, gt=0, le=1)
    """Share of the budget at which a running edge attempt is judged again by its own pace."""
    cloud_small_prior_ms: float = 1_500.0
    cloud_large_prior_ms: float = 2_500.0
    """Expected time of a whole answer before any was measured."""
    edge_ttft_prior_ms: float = 300.0
    edge_tpot_prior_ms: float = 15.0
    """Assumed of the edge until its first report."""
    simple_lane_max_tokens: int = 384
    """Prompt and answer together; longer work goes to the complex lane."""
    probe_every_s: float = Field(default=20.0, ge=0)
    """Least time between two probes of a target that is left for its slowness; 0: none."""
    probe_budget_ms: int = Field(default=20_000, ge=100)


class ComplexityPolicy(Settings):
    """How hard a conversation must be for which model; scores are 1 to 10."""

    strategy: Literal["rules", "similarity", "classifier"] = "classifier"
    """What speaks where no rule does: the length alone, examples, or the trained model."""
    routing: Literal["predictive", "cascade", "both"] = "both"
    """predictive: the score alone decides; cascade: the edge first, always, and judged; both:
    the score where it is sure, else `grey_mode`."""
    grey_mode: Literal["shadow_cloud", "shadow_best", "cascade", "second_signal"] = "cascade"
    low: float = Field(default=5.0, ge=1, le=10)
    """Under this the edge answers."""
    high: float = Field(default=7.0, ge=1, le=10)
    """From this on the cloud answers."""
    hysteresis: float = Field(default=1.0, ge=0, le=4)
    """A session leaves the side of its last answer only so far past the bound."""
    large_from: float = Field(default=8.5, ge=1, le=10)
    """From this on the large cloud model answers."""
    usual_pass_rate: float = Field(default=0.8, ge=0, le=1)
    pass_rate_points: float = Field(default=2.0, ge=0, le=10)
    """Points for each whole that a task's share of accepted edge answers lies under the usual."""
    similarity_floor: float = Field(default=0.5, ge=-1, le=1)
    similarity_margin: float = Field(default=0.05, ge=0, le=2)
    """Cosine that the nearest example must have, and lead over the nearest of the other kind."""
    simple_examples: tuple[str, ...] = ()
    complex_examples: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _in_order(self) -> ComplexityPolicy:
        if not self.low <= self.high <= self.large_from:
            raise ValueError("low, high, large_from: must not fall")
        if self.strategy == "similarity" and not (self.simple_examples and self.complex_examples):
            raise ValueError("strategy similarity: needs simple_examples and complex_examples")
        if self.grey_mode == "second_signal" and not (
            self.simple_examples and self.complex_examples
        ):
            raise ValueError("second_signal: needs simple_examples and complex_examples")
        return self


class CannedReply(Settings):
    """What is said when no model could answer."""

    text: str = "I cannot answer this right now."
    options: tuple[str, ...] = ("Try again in a moment", "Ask a person")


_ASK_BACK = CannedReply(
    text="I am not sure enough to answer this. Could you say more exactly what you need?",
    options=("Ask in other words", "Ask a person"),
)


class Policy(Settings):
    """Everything that decides. Frozen; a reload makes a new one."""

    capabilities: dict[str, CapabilityRow]
    default_task: str = "open_question"
    task_certainty: float = Field(default=0.6, ge=0, le=1)
    """Under this probability a recognized task type is not believed."""
    caps: Caps = Caps()
    trivial: TrivialRule = TrivialRule()
    words: WordLists = WordLists()
    complexity: ComplexityPolicy = ComplexityPolicy()
    latency: LatencyPolicy = LatencyPolicy()
    weak_retrieval_below: float = Field(default=0.5, ge=0, le=1)
    default_edge_max_input_tokens: int = 128
    """Where nothing else speaks: edge first up to this input, cloud first beyond."""
    on_large_timeout: OnLargeTimeout = "quick_edge"
    edge_context_tokens: int = 8_192
    """The edge window assumed before the worker has told its own."""
    degrade_context_share: float = Field(default=0.7, gt=0, le=1)
    default_max_output_tokens: int = Field(default=512, ge=1)
    stream_mode: StreamMode = StreamMode.COMMIT
    commit_tokens: int = Field(default=120, ge=1)
    cache: CachePolicy = CachePolicy()
    payload: PayloadPolicy = PayloadPolicy()
    lower_from_cost_share: float = Field(default=0.8, gt=0, le=1)
    """From this share of a tenant's daily ceiling on the large cloud model is not used."""
    shadow: Shadow = Shadow()
    late: Late = Late()
    thresholds: Thresholds = Thresholds()
    """Read from a file of its own, `thresholds_file`."""
    pinned_in_doubt: PinnedInDoubt = "ask_back"
    """What a pinned request gets whose answer was judged too weak; no model may help."""
    ask_back: dict[str, CannedReply] = Field(default_factory=lambda: {"en": _ASK_BACK})
    canned: dict[str, CannedReply] = Field(default_factory=lambda: {"en": CannedReply()})

    def capability(self, task_type: str) -> CapabilityRow:
        """The row of a task type, the default task's where it has none."""
        return self.capabilities.get(task_type, self.capabilities[self.default_task])
