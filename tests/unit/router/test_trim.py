"""The escalation payload keeps what an answer depends on, in its budget."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.trim import conversation_of, lost_constraints
from evaluation.dialogues import generate_dialogues
from services.router.execute.payload import escalate
from services.router.execute.trail import Trail
from services.router.policy.payload import PayloadPolicy
from services.router.policy.trim import (
    Conversation,
    EdgeDraft,
    Passage,
    Turn,
    is_protected,
    sentences,
    strip_reasoning,
    trim,
)
from tests.unit.router.test_executor import make_ask

SHIPPED = PayloadPolicy()
PARTS = st.sampled_from(
    [
        "hello there. ",
        "I can't eat nuts. ",
        "好的。",
        "不要花生。",
        "at most 3.5 kg! ",
        "ok ",
        "\n",
        "if",
    ]
)
TEXTS = st.lists(PARTS, max_size=6).map("".join)
CONVERSATIONS = st.builds(
    Conversation,
    instruction=st.just("Be brief."),
    slots=st.just((("plan", "gold"),)),
    turns=st.lists(st.builds(Turn, st.sampled_from(["user", "assistant"]), TEXTS), max_size=12).map(
        lambda turns: (*turns, Turn("user", "and now?"))
    ),
    passages=st.lists(st.builds(Passage, st.just("p"), TEXTS, st.floats(0, 1)), max_size=8).map(
        tuple
    ),
    draft=st.none() | st.builds(EdgeDraft, TEXTS, st.none(), st.just("LOW_CONFIDENCE")),
)


def test_the_generated_dialogues_lose_no_constraint_and_most_of_their_tokens() -> None:
    dialogues = generate_dialogues(24, seed=7)
    assert sum(len(one.turns) for one in dialogues) >= 300
    assert {one.language for one in dialogues} == {"en", "zh"}
    for language in ("en", "zh"):
        some = [one for one in dialogues if one.language == language]
        payloads = [trim(conversation_of(one), SHIPPED) for one in some]
        lost = [c for pair in zip(some, payloads, strict=True) for c in lost_constraints(*pair)]
        assert lost == []
        share = sum(p.tokens_after for p in payloads) / sum(p.tokens_before for p in payloads)
        assert 0.3 <= share <= 0.5


@given(CONVERSATIONS, st.integers(100, 400))
def test_what_an_answer_depends_on_survives_any_budget(
    conversation: Conversation, budget: int
) -> None:
    payload = trim(conversation, PayloadPolicy(budget_tokens=budget))
    sent = "\n".join([payload.instruction, *(turn.text for turn in payload.turns)])
    for turn in conversation.turns:
        for sentence in sentences(turn.text):
            if is_protected(sentence):
                assert sentence in sent
    users = [turn for turn in conversation.turns if turn.role == "user"]
    assert [turn.text for turn in users[-2:]] == [
        turn.text for turn in payload.turns if turn.role == "user"
    ][: len(users[-2:])]
    assert payload.slots == conversation.slots
    assert payload.instruction.startswith("Be brief.")
    assert payload.over_budget == (payload.tokens_after > budget)


@given(TEXTS)
def test_sentences_are_all_of_a_text(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text",
    ["I don't eat nuts", "only on Friday", "3.5 kg", "two of them", "如果下雨", "别打电话", "周三",
     "at most ten", "unless it rains", "花生过敏", "不超过五百元"],
)  # fmt: skip
def test_negations_conditions_amounts_and_dates_are_protected(text: str) -> None:
    assert is_protected(text)


def test_the_draft_comes_last_without_its_reasoning() -> None:
    turns = (Turn("user", "which one?"),)
    draft = EdgeDraft("<think>let me see</think>The blue one.", 0.4, "LOW_CONFIDENCE")
    payload = trim(Conversation("", (), turns, (), draft), SHIPPED)
    prompt, _, form = payload.turns[-1].text.partition("Draft (JSON): ")
    assert "Overrule" in prompt
    assert json.loads(form) == {
        "answer": "The blue one.",
        "score": 0.4,
        "reason": "LOW_CONFIDENCE",
    }
    assert payload.reviewer_version == "1"
    without = trim(Conversation("", (), turns, (), draft), PayloadPolicy(draft=False))
    assert (without.turns, without.reviewer_version) == (turns, "")
    assert strip_reasoning("<think>never ends") == ""


def test_the_best_passages_stay_and_lead_the_way_out() -> None:
    passages = tuple(Passage(f"p{n}", "word " * 60, n / 10) for n in range(8))
    conversation = Conversation("", (), (Turn("user", "x"),), passages)
    roomy = trim(conversation, SHIPPED)
    assert [one.id for one in roomy.passages] == ["p7", "p6", "p5", "p4", "p3"]
    tight = trim(conversation, PayloadPolicy(budget_tokens=250))
    assert [one.id for one in tight.passages] == ["p7", "p6", "p5"]


def test_requests_with_tools_are_sent_as_they_are() -> None:
    ask = make_ask()
    assert escalate(ask, Trail(), SHIPPED) is not None
    assert escalate(ask, Trail(), PayloadPolicy(enabled=False)) is None
    ask.request.tools.add(name="send")
    assert escalate(ask, Trail(), SHIPPED) is None
