"""What makes two requests the same to the cache, and which requests may use it. Pure.

The key is a hash over everything that changes an answer, so that what is not in it cannot be
shared: the tenant, the session unless the answer may be shared, the policy, and every field.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from services.common.similarity.words import normalize
from services.router.ask import Ask
from services.router.policy.cache import EscalationMemoryPolicy, TaskCache
from services.router.policy.facts import Screening
from services.router.policy.features import mentions
from services.router.policy_store import VersionedPolicy
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2


@dataclass(frozen=True, slots=True)
class Key:
    """Where a request's answer is stored.

    Attributes:
        scope: Everything but the last question: only within it may a like question serve.
        fingerprint: The scope and the normalized question.
        question: The last turn as it came; empty where no like question may serve.
        session: Hash of tenant and session; empty without one.
        frame: Hash of everything but the conversation.
        turns: The messages, serialized.
    """

    scope: str
    fingerprint: str
    question: str
    rules: TaskCache
    memory: EscalationMemoryPolicy
    session: str
    frame: str
    turns: tuple[bytes, ...]

    def before(self, count: int) -> str:
        """Hash of the first `count` turns; empty for none."""
        return _hash(turn.hex() for turn in self.turns[:count]) if count > 0 else ""


def key_of(ask: Ask, screening: Screening, versioned: VersionedPolicy) -> Key | None:
    """The key of a request; None where it must not touch the cache.

    Personal data, pinned requests, tools, live information and drawn samples never do, nor what
    is a session's own where there is no session.
    """
    request, policy = ask.request, versioned.policy
    rules = policy.cache.task(ask.task_type)
    pinned = request.privacy_hint == router_pb2.PRIVACY_HINT_KEEP_ON_EDGE
    if screening.has_pii or pinned or _uses_tools(request) or _drawn(request):
        return None
    if not (rules.exact or rules.semantic):
        return None
    last = request.messages[-1]
    if last.role != chat_pb2.ROLE_USER or mentions(last.content, policy.words.live):
        return None
    shared = rules.shareable and not has_context(request)
    if not shared and not ask.session_id:
        return None
    owner = "" if shared else ask.session_id
    scope = _hash([owner, *_scope(ask, versioned.version)])
    # History makes the same words mean something else: then only equal conversations are equal.
    alone = len(request.messages) == 1 and len(last.content) <= rules.similarity.max_chars
    return Key(
        scope=scope,
        fingerprint=_hash([scope, normalize(last.content)]),
        question=last.content if alone and rules.semantic else "",
        rules=rules,
        memory=policy.cache.memory,
        session=_hash([ask.tenant.name, ask.session_id]) if ask.session_id else "",
        frame=_hash(_frame(ask, versioned.version)),
        turns=tuple(turn.SerializeToString(deterministic=True) for turn in request.messages),
    )


def has_context(request: router_pb2.RouteRequest) -> bool:
    """Something beyond the question itself, that is a session's own."""
    return len(request.messages) > 1 or bool(request.slots) or bool(request.snippets)


def _uses_tools(request: router_pb2.RouteRequest) -> bool:
    turns = [*request.messages, *request.few_shot]
    return bool(request.tools) or any(turn.tool_calls or turn.tool_call_id for turn in turns)


def _drawn(request: router_pb2.RouteRequest) -> bool:
    """The caller wants a fresh draw each time."""
    sampling = request.sampling
    return sampling.temperature > 0 and not sampling.HasField("seed")


def _scope(ask: Ask, policy_version: str) -> Iterable[str]:
    yield ask.task_type
    for turn in ask.request.messages[:-1]:
        yield turn.SerializeToString(deterministic=True).hex()
    yield from _frame(ask, policy_version)


def _frame(ask: Ask, policy_version: str) -> Iterable[str]:
    yield from (ask.tenant.name, ask.channel, policy_version)
    yield ",".join(sorted(ask.tenant.targets))
    # What says how to answer stays; what the answer must not depend on is cleared.
    rest = router_pb2.RouteRequest()
    rest.CopyFrom(ask.request)
    for name in ("messages", "session_id", "stream_mode", "ttft_budget_ms", "channel", "task_type"):
        rest.ClearField(name)
    yield rest.SerializeToString(deterministic=True).hex()


def _hash(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        # Lengths keep "ab" + "c" apart from "a" + "bc".
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()
