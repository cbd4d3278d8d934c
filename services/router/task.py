"""Recognizes the task type where the caller gives none: by form, tools and plain words."""

from __future__ import annotations

from services.router.policy.config import Policy
from services.router.policy.features import estimate_tokens, mentions
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2

_SUMMARY = ("summarize", "summarise", "summary of", "tl;dr", "总结", "摘要", "概括")
_KEYWORDS = ("extract keywords", "extract the keywords", "key phrases", "提取关键词", "关键词")
_CORRECTION = ("correct the", "fix the grammar", "proofread", "改错", "纠正", "润色")
_SHORT_SUMMARY_TOKENS = 2_000


def recognize(request: router_pb2.RouteRequest, policy: Policy) -> str:
    """The caller's task type where the policy knows it, else a guess from the form and words.

    A classifier takes this place later; until then what is not plain is an open question.
    """
    if request.task_type in policy.capabilities:
        return request.task_type
    by_form = _by_form(request)
    if by_form:
        return by_form
    last = request.messages[-1].content
    if "```" in last:
        return "code"
    if mentions(last, _SUMMARY):
        long = estimate_tokens(last) >= _SHORT_SUMMARY_TOKENS
        return "long_summary" if long else "short_summary"
    if mentions(last, _KEYWORDS):
        return "keyword_extraction"
    if mentions(last, _CORRECTION):
        return "text_correction"
    return policy.default_task


def _by_form(request: router_pb2.RouteRequest) -> str:
    if len(request.tools) > 1:
        return "multi_step_tools"
    if request.tools or request.messages[-1].role == chat_pb2.ROLE_TOOL:
        return "single_tool_call"
    form = request.output.WhichOneof("form")
    if form == "labels":
        return "intent_classification"
    if form == "json_schema":
        return "structured_extraction"
    return ""
