"""L4: what is said when no attempt served. Kept draft, stored answer, canned reply."""

from __future__ import annotations

from collections.abc import Mapping

from services.common.vocabulary import FallbackType, Level, Reason, Target
from services.router.execute.trail import Reply, Trail
from services.router.policy.config import CannedReply, Policy
from services.router.policy.release import whole_sentences
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2

_DRAFT_NOTICE = "The answer was not confirmed; human check advised."
_STALE_NOTICE = "No model could answer in time; this is an older answer to a like question."
_ASK_BACK_NOTICE = "The answer was not certain enough, and the request may not leave."
_CANNED_NOTICE = "No model could answer in time."


def last_resort(
    request: router_pb2.RouteRequest,
    policy: Policy,
    trail: Trail,
    reason: Reason,
    fallback_type: FallbackType,
) -> Reply:
    """The best that is left: kept draft, a stored answer that is old or only like, canned."""
    if _in_doubt(trail) and policy.pinned_in_doubt == "ask_back":
        asked = _by_language(request, policy.ask_back)
        return _canned_reply(asked, Reason.PII_PIN, fallback_type, _ASK_BACK_NOTICE)
    draft = whole_sentences(trail.draft) if not request.output.WhichOneof("form") else ""
    if draft:
        return Reply(
            level=Level.L4,
            target=Target.FALLBACK,
            reason=reason,
            fallback_type=fallback_type,
            text=draft,
            finish_reason=chat_pb2.FINISH_REASON_INTERRUPTED,
            model_id=trail.draft_model_id,
            degraded=True,
            partial=draft != trail.draft.rstrip(),
            notice=_DRAFT_NOTICE,
        )
    if trail.stale is not None:
        return Reply(
            level=Level.L4,
            target=Target.CACHE,
            reason=reason,
            fallback_type=fallback_type,
            text=trail.stale.text,
            finish_reason=chat_pb2.FINISH_REASON_STOP,
            model_id=trail.stale.model_id,
            standin=trail.stale.standin,
            degraded=True,
            notice=_STALE_NOTICE,
        )
    canned = _by_language(request, policy.canned)
    return _canned_reply(canned, reason, fallback_type, _CANNED_NOTICE)


def _in_doubt(trail: Trail) -> bool:
    """A pinned request whose own answer was judged too weak: nothing stronger may see it."""
    facts, judged = trail.facts, trail.judgement
    pinned = facts is not None and facts.pin_pii and facts.screening.has_pii
    return pinned and judged is not None and not judged.kept


def _canned_reply(
    canned: CannedReply, reason: Reason, fallback_type: FallbackType, notice: str
) -> Reply:
    return Reply(
        level=Level.L4,
        target=Target.FALLBACK,
        reason=reason,
        fallback_type=fallback_type,
        text=canned.text,
        finish_reason=chat_pb2.FINISH_REASON_STOP,
        degraded=True,
        notice=notice,
        options=canned.options,
    )


def _by_language(
    request: router_pb2.RouteRequest, replies: Mapping[str, CannedReply]
) -> CannedReply:
    last = request.messages[-1].content
    chinese = any("\u4e00" <= char <= "\u9fff" for char in last[:500])
    language = "zh" if chinese and "zh" in replies else "en"
    return replies.get(language) or CannedReply()
