"""A stored answer, and its form in a store."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from services.common.vocabulary import FallbackType, Level, Reason, Target
from services.router.ask import Ask
from services.router.execute.sink import Sink
from services.router.execute.trail import Reply, StaleAnswer, Trail
from services.router.policy.facts import CLOUD
from services.router.policy.plan import Plan, PlannedAttempt
from tandem.common.v1 import chat_pb2

_STORABLE = frozenset({Level.L0, Level.L1, Level.L2, Level.L3})


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer that was served whole.

    Attributes:
        fresh_until: Seconds since the epoch; later it may serve as a last resort only.
        fingerprint: Under which the exact cache holds it.
        row: Id in the vector store; empty where it is not there.
        request_id: The request that it was made for.
    """

    text: str
    model_id: str
    standin: bool
    fresh_until: float
    fingerprint: str
    row: str
    request_id: str

    @property
    def stale(self) -> StaleAnswer:
        """What the last resort needs of it."""
        return StaleAnswer(self.text, self.model_id, self.standin)

    def dump(self) -> bytes:
        """As stored."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()


def load(data: bytes) -> CachedAnswer | None:
    """What `dump` made; None for anything else, such as a row of another version."""
    try:
        return CachedAnswer(**json.loads(data))
    except (ValueError, TypeError):
        return None


def storable(reply: Reply) -> bool:
    """Whole, undegraded answers of a model only."""
    return (
        reply.level in _STORABLE
        and not (reply.degraded or reply.partial or reply.tool_calls)
        and reply.finish_reason == chat_pb2.FINISH_REASON_STOP
        and bool(reply.text.strip())
    )


def escalated(reply: Reply) -> bool:
    """The cloud answered because the edge's answer was not good enough."""
    return reply.target in CLOUD and reply.fallback_type is FallbackType.QUALITY and storable(reply)


async def serve_hit(
    answer: CachedAnswer, reason: Reason, ask: Ask, sink: Sink, trail: Trail, now: float
) -> Reply:
    """Shows a stored answer as any other: the decision, its text, the reply."""
    hit = PlannedAttempt(Level.NONE, Target.CACHE, reason, 0.0)
    trail.plan = Plan((hit,), reason, FallbackType.NONE, ask.task_type, 0, ())
    await sink.decided(trail.plan)
    trail.first_text_at = now
    await sink.chunk(answer.text, Target.CACHE, committed=True)
    return Reply(
        level=Level.NONE,
        target=Target.CACHE,
        reason=reason,
        fallback_type=FallbackType.NONE,
        text=answer.text,
        finish_reason=chat_pb2.FINISH_REASON_STOP,
        model_id=answer.model_id,
        standin=answer.standin,
    )
