"""Makes the escalation payload of a request whose edge answer fell short."""

from __future__ import annotations

from dataclasses import dataclass, replace

import structlog
from opentelemetry import metrics, trace

from services.common.telemetry import names
from services.router.ask import Ask
from services.router.execute.trail import Trail
from services.router.policy.payload import PayloadPolicy
from services.router.policy.trim import (
    Conversation,
    EdgeDraft,
    Passage,
    Payload,
    Role,
    Turn,
    trim,
)
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2

_log = structlog.get_logger()
_tokens = metrics.get_meter("tandem.router").create_histogram(
    names.PAYLOAD_TOKENS, description="Tokens of escalated requests before and after trimming"
)
_ROLES: dict[int, Role] = {
    chat_pb2.ROLE_USER: "user",
    chat_pb2.ROLE_ASSISTANT: "assistant",
    chat_pb2.ROLE_TOOL: "tool",
}
_CODES = {role: code for code, role in _ROLES.items()}


@dataclass(frozen=True, slots=True)
class Escalation:
    """A request as it is sent on, and its estimated tokens before and after."""

    ask: Ask
    tokens_before: int
    tokens_after: int


def escalate(ask: Ask, trail: Trail, policy: PayloadPolicy) -> Escalation | None:
    """The trimmed request; None where it is sent as it is: switched off, or with tool calls."""
    request = ask.request
    if not policy.enabled or request.tools or any(turn.tool_calls for turn in request.messages):
        return None
    payload = trim(conversation_of(request, _draft(trail)), policy)
    for stage, count in (("before", payload.tokens_before), ("after", payload.tokens_after)):
        _tokens.record(count, {names.STAGE: stage})
    trace.get_current_span().set_attributes(
        {
            names.PAYLOAD_TOKENS_BEFORE: payload.tokens_before,
            names.PAYLOAD_TOKENS_AFTER: payload.tokens_after,
            names.REVIEWER_VERSION: payload.reviewer_version,
        }
    )
    if payload.over_budget:
        _log.warning(
            "payload_over_budget", tokens=payload.tokens_after, budget=policy.budget_tokens
        )
    sent = replace(ask, request=request_of(request, payload))
    return Escalation(sent, payload.tokens_before, payload.tokens_after)


def conversation_of(request: router_pb2.RouteRequest, draft: EdgeDraft | None) -> Conversation:
    """A request as the trimmer takes it."""
    return Conversation(
        instruction=request.system,
        slots=tuple(sorted(request.slots.items())),
        turns=tuple(Turn(_ROLES[turn.role], turn.content) for turn in request.messages),
        passages=tuple(Passage(one.id, one.text, one.score) for one in request.snippets),
        draft=draft,
    )


def request_of(request: router_pb2.RouteRequest, payload: Payload) -> router_pb2.RouteRequest:
    """The request with the payload in place of conversation and passages; examples stay out."""
    made = router_pb2.RouteRequest()
    made.CopyFrom(request)
    for name in ("messages", "few_shot", "snippets"):
        made.ClearField(name)
    made.system = payload.instruction
    for turn in payload.turns:
        made.messages.add(role=_CODES[turn.role], content=turn.text)
    for one in payload.passages:
        made.snippets.add(id=one.id, text=one.text, score=one.score)
    return made


def _draft(trail: Trail) -> EdgeDraft | None:
    if not trail.draft:
        return None
    fell = [record.error_reason for record in trail.attempts if record.error_reason]
    return EdgeDraft(trail.draft, None, fell[-1] if fell else "")
