"""What happens to one request, as it happens: the one mutable thing of its execution."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.common.vocabulary import AttemptOutcome, FallbackType, Level, Reason, Target
from services.router.policy.facts import Facts
from services.router.policy.judge import Judgement
from services.router.policy.plan import Plan
from tandem.common.v1 import chat_pb2


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt, tried or skipped, as ledger and reply show it. Times in milliseconds."""

    index: int
    level: Level
    target: Target
    reason: Reason
    outcome: AttemptOutcome
    cap_ms: float
    eta_ms: float
    duration_ms: float = 0.0
    model_id: str = ""
    error_reason: str = ""
    usage: chat_pb2.Usage = field(default_factory=chat_pb2.Usage)
    payload_tokens: tuple[int, int] | None = None
    """Of an escalation: estimated prompt tokens before and after trimming."""
    judgement: Judgement | None = None
    """Of its answer, where that was judged."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer as it was served."""

    level: Level
    target: Target
    reason: Reason
    fallback_type: FallbackType
    text: str
    finish_reason: chat_pb2.FinishReason.ValueType
    tool_calls: tuple[chat_pb2.ToolCall, ...] = ()
    model_id: str = ""
    standin: bool = False
    degraded: bool = False
    partial: bool = False
    notice: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StaleAnswer:
    """A stored answer that may serve as a last resort only."""

    text: str
    model_id: str
    standin: bool


@dataclass(slots=True)
class Trail:
    """Filled by pipeline and executor; read once, by the recorder.

    Attributes:
        ended: ANSWERED, CANCELLED, DEADLINE or the reason of an error.
        first_text_at: Monotonic seconds at which text was first shown.
        draft: A whole answer that was judged and not served, for L4.
        candidate: What another policy would have done, in a dry run.
        judgement: Of the last answer of the edge that was judged.
        stale: A stored answer that is too old or not quite like, for L4.
    """

    facts: Facts | None = None
    plan: Plan | None = None
    attempts: list[AttemptRecord] = field(default_factory=list)
    reply: Reply | None = None
    first_text_at: float | None = None
    draft: str = ""
    draft_model_id: str = ""
    judgement: Judgement | None = None
    stale: StaleAnswer | None = None
    candidate: dict[str, str] | None = None
    ended: str = "ERROR"
    stage_ms: dict[str, float] = field(default_factory=dict)

    def usage(self) -> chat_pb2.Usage:
        """Tokens and money of all attempts together."""
        total = chat_pb2.Usage()
        for record in self.attempts:
            total.input_tokens += record.usage.input_tokens
            total.cached_input_tokens += record.usage.cached_input_tokens
            total.output_tokens += record.usage.output_tokens
            total.cost_micro_usd += record.usage.cost_micro_usd
            total.estimated |= record.usage.estimated
        return total
