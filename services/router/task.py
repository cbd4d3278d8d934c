"""Recognizes the task type where the caller gives none: by form, plain words and a classifier."""

from __future__ import annotations

from services.common.complexity.task_model import TaskModel
from services.router.embed_text import TextVector
from services.router.policy.config import Policy
from services.router.policy.features import estimate_tokens, mentions
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2

_SUMMARY = ("summarize", "summarise", "summary of", "tl;dr", "总结", "摘要", "概括")
_KEYWORDS = ("extract keywords", "extract the keywords", "key phrases", "提取关键词", "关键词")
_CORRECTION = ("correct the", "fix the grammar", "proofread", "改错", "纠正", "润色")
_SHORT_SUMMARY_TOKENS = 2_000
_NEEDS_TOOLS = frozenset({"single_tool_call", "multi_step_tools"})


def recognize(
    request: router_pb2.RouteRequest,
    policy: Policy,
    model: TaskModel | None = None,
    vector: TextVector | None = None,
) -> str:
    """The caller's task type where the policy knows it, else by form, plain words, classifier.

    Where none of them is sure it is the default task.
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
    return _by_model(policy, model, vector) or policy.default_task


def _by_model(policy: Policy, model: TaskModel | None, vector: TextVector | None) -> str:
    """The classifier's word where it is sure. It never says that tools are called: without
    tools in the request there is nothing to call."""
    found = vector.get() if model is not None and vector is not None else None
    if model is None or found is None:
        return ""
    task, chance = model.recognize(found)
    if chance < policy.task_certainty or task in _NEEDS_TOOLS:
        return ""
    return task if task in policy.capabilities else ""


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
