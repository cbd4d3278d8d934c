"""The escalation payload: what a cloud model needs of a conversation, in a token budget. Pure.

In order: instruction, all slots, older turns as a summary, the last turns word for word, the
best passages, and last the edge's draft under a reviewer's prompt. A sentence with a negation,
a condition, an amount or a date is never left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from services.router.policy.features import estimate_tokens
from services.router.policy.payload import PayloadPolicy

Role = Literal["user", "assistant", "tool"]

REVIEWER_VERSION: Final = "1"
_REVIEWER: Final = (
    "A smaller model drafted the answer below; it may be wrong. Answer the conversation yourself. "
    "Overrule the draft wherever it is wrong or misses a stated condition. If it is right, confirm "
    "it briefly in the form that was asked for.\nDraft (JSON): "
)
_SUMMARY_HEAD: Final = "Earlier in this conversation (shortened):"
_SENTENCE = re.compile(r"[^.!?。！？；;\n]*(?:[.!?](?=\S)[^.!?。！？；;\n]*)*[.!?。！？；;\n]*\s*")
_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|$)", re.DOTALL | re.IGNORECASE)
# What changes the meaning of an answer when it is lost.
_PROTECTED = re.compile(
    r"\d|[零一二三四五六七八九十百千万亿两半]+[天日月年元块个人次点号周岁度斤]|[$€£¥%％]"
    r"|不|没|别|无|未|勿|非|只|仅|除|如果|若|要是|假如|假设|只要|只有|除非|否则|必须|一定|至少|至多|最多"
    r"|最少|以内|以前|之前|之后|以后|超过|低于|高于|务必|禁止|过敏"
    r"|周[一二三四五六日末]|星期|今天|明天|昨天|后天|下周|本周|上周|下月|本月|月底|月初|年底"
    r"|\b(?:not?|never|none|nothing|neither|nor|without|cannot|except|unless|only|if|when|until|"
    r"before|after|must|should|always|at least|at most|provided|otherwise|instead|but|avoid|"
    r"allerg\w*|refuse\w*|monday|tuesday|wednesday|thursday|friday|saturday|sunday|today|tomorrow|"
    r"yesterday|week\w*|month\w*|january|february|march|april|may|june|july|august|september|"
    r"october|november|december|one|two|three|four|five|six|seven|eight|nine|ten|dozen|twice|"
    r"half|hundred|thousand|million)\b|n't\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved passage; `score` 0–1."""

    id: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class EdgeDraft:
    """What the edge answered. `score` is the calibrated confidence, None where there is none."""

    answer: str
    score: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """A request as the trimmer needs it."""

    instruction: str
    slots: tuple[tuple[str, str], ...]
    turns: tuple[Turn, ...]
    passages: tuple[Passage, ...] = ()
    draft: EdgeDraft | None = None


@dataclass(frozen=True, slots=True)
class Payload:
    """What is sent.

    Attributes:
        instruction: With the summary of older turns.
        tokens_before, tokens_after: Estimated, slots included; the draft counts only after.
        over_budget: What must not be left out is longer than the budget.
    """

    instruction: str
    slots: tuple[tuple[str, str], ...]
    turns: tuple[Turn, ...]
    passages: tuple[Passage, ...]
    tokens_before: int
    tokens_after: int
    over_budget: bool
    reviewer_version: str


def trim(conversation: Conversation, policy: PayloadPolicy) -> Payload:
    """The payload of a conversation."""
    older, recent = split_turns(conversation.turns, policy.keep_turns)
    best = sorted(conversation.passages, key=lambda one: -one.score)[: policy.max_snippets]
    gist_chars, draft_chars = policy.gist_chars, policy.max_draft_chars
    payload = _build(conversation, older, recent, best, gist_chars, draft_chars, policy)
    while payload.tokens_after > policy.budget_tokens:
        if len(best) > policy.min_snippets:
            best = best[:-1]
        elif gist_chars:
            gist_chars = 0
        elif draft_chars > policy.max_draft_chars // 4:
            draft_chars //= 2
        else:
            return replace(payload, over_budget=True)
        payload = _build(conversation, older, recent, best, gist_chars, draft_chars, policy)
    return payload


def split_turns(
    turns: Sequence[Turn], keep_turns: int
) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """Older turns, and those from the `keep_turns`-th last user turn on."""
    users = [place for place, turn in enumerate(turns) if turn.role == "user"]
    start = users[-keep_turns] if len(users) >= keep_turns else 0
    return tuple(turns[:start]), tuple(turns[start:])


def summarize(turns: Sequence[Turn], gist_chars: int) -> tuple[str, ...]:
    """A line for each older turn that says something: its protected sentences word for word.

    Made of sentences that were said, so nothing is invented. Of a turn of the user without any,
    the beginning is kept, for `gist_chars` characters; a repeated sentence is said once.
    """
    said: set[str] = set()
    lines: list[str] = []
    for turn in turns:
        kept = [one for one in sentences(turn.text) if is_protected(one) and one not in said]
        said.update(kept)
        if kept:
            lines.append(f"{turn.role}: {' '.join(kept)}")
        elif turn.role == "user" and gist_chars and not _all_said(turn, said):
            lines.append(f"user: {turn.text.strip()[:gist_chars]}")
    return tuple(lines)


def sentences(text: str) -> Iterator[str]:
    """Sentences without surrounding space; a point within a number ends none."""
    for match in _SENTENCE.finditer(text):
        if match.group().strip():
            yield match.group().strip()


def is_protected(sentence: str) -> bool:
    """Holds a negation, a condition, an amount or a date."""
    return _PROTECTED.search(sentence) is not None


def strip_reasoning(answer: str) -> str:
    """A draft without what its model thought aloud."""
    return _REASONING.sub("", answer).strip()


def tokens_of(
    instruction: str,
    slots: Sequence[tuple[str, str]],
    turns: Sequence[Turn],
    passages: Sequence[Passage],
) -> int:
    """Estimated tokens of all text; errs towards too many."""
    texts = [instruction, *(f"{key}: {value}" for key, value in slots)]
    texts += [turn.text for turn in turns]
    texts += [f"[{one.id}] {one.text}" for one in passages]
    return sum(map(estimate_tokens, texts))


def _build(
    conversation: Conversation,
    older: tuple[Turn, ...],
    recent: tuple[Turn, ...],
    best: Sequence[Passage],
    gist_chars: int,
    draft_chars: int,
    policy: PayloadPolicy,
) -> Payload:
    lines = summarize(older, gist_chars)
    summary = "\n".join([_SUMMARY_HEAD, *lines]) if lines else ""
    instruction = "\n\n".join(part for part in (conversation.instruction, summary) if part)
    turns, draft = recent, conversation.draft
    if draft is not None and policy.draft:
        turns = (*recent, Turn("user", _review(draft, draft_chars)))
    before = tokens_of(
        conversation.instruction, conversation.slots, conversation.turns, conversation.passages
    )
    return Payload(
        instruction=instruction,
        slots=conversation.slots,
        turns=turns,
        passages=tuple(best),
        tokens_before=before,
        tokens_after=tokens_of(instruction, conversation.slots, turns, best),
        over_budget=False,
        reviewer_version=REVIEWER_VERSION if len(turns) > len(recent) else "",
    )


def _review(draft: EdgeDraft, max_chars: int) -> str:
    answer = strip_reasoning(draft.answer)[:max_chars]
    form = {"answer": answer, "score": draft.score, "reason": draft.reason}
    return _REVIEWER + json.dumps(form, ensure_ascii=False)


def _all_said(turn: Turn, said: set[str]) -> bool:
    return all(one in said for one in sentences(turn.text))
