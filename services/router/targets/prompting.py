"""Puts facts, passages and the form of the answer into the system text."""

from __future__ import annotations

from collections.abc import Sequence

from services.router.policy.features import estimate_tokens
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2


def system_text(request: router_pb2.RouteRequest, *, spell_out_form: bool) -> str:
    """The system text with slots and passages; the form too, where the model needs to read it."""
    parts = [request.system] if request.system else []
    if request.slots:
        facts = "\n".join(f"- {key}: {value}" for key, value in sorted(request.slots.items()))
        parts.append(f"Known facts:\n{facts}")
    if request.snippets:
        passages = "\n".join(f"[{snippet.id}] {snippet.text}" for snippet in request.snippets)
        parts.append(f"Passages:\n{passages}")
    if spell_out_form:
        form = _form_text(request.output)
        if form:
            parts.append(form)
    return "\n\n".join(parts)


def recent_turns(
    turns: Sequence[chat_pb2.Message], budget_tokens: int
) -> Sequence[chat_pb2.Message]:
    """The newest turns that fit `budget_tokens`, at least the last one (L1)."""
    kept: list[chat_pb2.Message] = []
    used = 0
    for turn in reversed(turns):
        used += estimate_tokens(turn.content)
        if kept and used > budget_tokens:
            break
        kept.append(turn)
    return kept[::-1]


def _form_text(output: chat_pb2.OutputContract) -> str:
    form = output.WhichOneof("form")
    if form == "labels":
        return "Answer with exactly one of these labels: " + ", ".join(output.labels.values)
    if form == "json_schema":
        return f"Answer with JSON only, fitting this JSON schema: {output.json_schema}"
    if form == "regex":
        return f"Answer with text that matches this regular expression: {output.regex}"
    return ""
