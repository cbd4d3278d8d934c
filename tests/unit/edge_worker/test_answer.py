"""When an answer ends, and what text of it is sent."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.vocabulary import FinishReason
from services.edge_worker.answer import Answer, AnswerSpec
from services.edge_worker.constraint import LabelConstraint
from services.edge_worker.label_trie import build_trie
from services.edge_worker.sampling import Row, SamplingParams, Scorer
from services.edge_worker.stop import StopMatcher
from tests.fakes.burn_runtime import EOS, VOCAB, ByteDecoder

GREEDY = SamplingParams()


def row(token: int, second: int | None = None) -> Row:
    logits = np.zeros(VOCAB, dtype=np.float32)
    logits[token] = 10.0
    if second is not None:
        logits[second] = 9.0
    return logits


def feed(answer: Answer, tokens: Sequence[int]) -> tuple[list[str], FinishReason | None]:
    scorer, pieces = Scorer(VOCAB), []
    for token in tokens:
        delta, reason = answer.take(row(token), scorer)
        pieces.append(delta.text if delta is not None else "")
        if reason is not None:
            return pieces, reason
    return pieces, None


def answer(max_tokens: int = 100, **changes: object) -> Answer:
    spec = AnswerSpec(
        GREEDY,
        0,
        max_tokens,
        end_ids=frozenset({EOS}),
        **changes,  # type: ignore[arg-type]
    )
    return Answer(spec, ByteDecoder(1))


@pytest.mark.parametrize(
    ("text", "changes", "expected", "reason"),
    [
        ("hello", {}, "hello", None),
        ("hello\x00", {}, "hello", FinishReason.STOP),
        ("hello", {"max_tokens": 3}, "hel", FinishReason.LENGTH),
        ("one two END three", {"stops": ["END"]}, "one two ", FinishReason.STOP),
        ("abcabd", {"stops": ["abd"]}, "abc", FinishReason.STOP),
        ("aaab", {"stops": ["aab"]}, "a", FinishReason.STOP),
        ("a stop", {"stops": ["stop", "top"]}, "a ", FinishReason.STOP),
        ("ends in EN\x00", {"stops": ["END"]}, "ends in EN", FinishReason.STOP),
        ("ends in EN", {"stops": ["END"], "max_tokens": 10}, "ends in EN", FinishReason.LENGTH),
        ("xx END", {"stops": ["x"], "min_tokens": 4}, "xx END", None),
        ("价格：停止", {"stops": ["停止"]}, "价格：", FinishReason.STOP),
    ],
)
def test_end(
    text: str, changes: dict[str, object], expected: str, reason: FinishReason | None
) -> None:
    tokens = [EOS if byte == 0 else byte for byte in text.encode()]
    pieces, found = feed(answer(**changes), tokens)  # type: ignore[arg-type]
    assert found is reason
    assert "".join(pieces) == expected


def test_beginning_of_a_stop_string_is_held_back() -> None:
    pieces, _ = feed(answer(stops=["END"]), b"EEx")
    assert pieces == ["", "E", "Ex"]


def test_end_token_is_not_drawn_before_the_minimum() -> None:
    one = answer(min_tokens=2)
    logits = row(EOS, second=ord("a"))
    scorer = Scorer(VOCAB)
    reasons = [one.take(logits, scorer)[1] for _ in range(3)]
    assert reasons == [None, None, FinishReason.STOP]
    assert one.count == 3


def test_a_character_that_the_end_cuts_is_left_out() -> None:
    pieces, reason = feed(answer(max_tokens=2), "价".encode())
    assert "".join(pieces) == ""
    assert reason is FinishReason.LENGTH


def test_figures_of_confidence() -> None:
    one = answer()
    scorer = Scorer(VOCAB)
    one.take(row(97, second=98), scorer)
    one.take(row(97), scorer)
    first = -np.log(1 + np.exp(-1) + (VOCAB - 2) * np.exp(-10))
    second = -np.log(1 + (VOCAB - 1) * np.exp(-10))
    assert one.mean_logprob == pytest.approx((first + second) / 2, abs=1e-5)
    assert one.min_logprob == pytest.approx(first, abs=1e-5)
    assert one.mean_margin == pytest.approx((1 + 10) / 2, abs=1e-5)


def test_tokens_are_reported_where_asked() -> None:
    one = answer(logprobs=True, top_logprobs=2)
    delta, _ = one.take(row(97, second=98), Scorer(VOCAB))
    assert delta is not None
    (token,) = delta.tokens
    assert token.id == 97
    assert [other for other, _ in token.alternatives] == [97, 98]
    assert token.alternatives[0][1] == pytest.approx(token.logprob)


@pytest.mark.parametrize(
    ("wish", "expected"),
    [("yes", "yes"), ("no way", "no way"), ("nobody", "no"), ("zzz", "yes"), ("no\x00", "no")],
)
def test_labels_hold_the_answer(wish: str, expected: str) -> None:
    labels = ["yes", "no", "no way"]
    spec = AnswerSpec(GREEDY, 0, 10, end_ids=frozenset({EOS}))
    one = Answer(
        spec,
        ByteDecoder(1),
        LabelConstraint(build_trie(list(label.encode()) for label in labels), {EOS}),
    )
    scorer, text, reason = Scorer(VOCAB), "", None
    for place in range(10):
        byte = wish.encode()[place] if place < len(wish) else 0
        # A wish that no label grants leaves the model's second choices: the end, then "y".
        logits = row(EOS if byte == 0 else byte)
        logits[EOS] += 1.0
        logits[ord("y")] += 0.5
        delta, reason = one.take(logits, scorer)
        text += delta.text if delta is not None else ""
        if reason is not None:
            break
    assert reason is FinishReason.STOP
    assert text == expected


@given(
    text=st.text("abE", max_size=30),
    stops=st.lists(st.text("abE", min_size=1, max_size=4), min_size=1, max_size=3),
    cuts=st.lists(st.integers(0, 30), max_size=6),
)
def test_cuts_between_pieces_change_nothing(text: str, stops: list[str], cuts: list[int]) -> None:
    """However the text is cut, what comes out is the text before the first stop to end."""
    matcher, sent, stopped = StopMatcher(stops), "", False
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    letters = [text[i : i + 1] for i in range(len(text))] if not cuts else []
    for piece in letters or [text[a:b] for a, b in itertools.pairwise(edges)]:
        out, stopped = matcher.push(piece)
        sent += out
        if stopped:
            break
    if not stopped:
        sent += matcher.finish()
    found = any(stop in text for stop in stops)
    assert stopped == found
    assert text.startswith(sent)
    assert not any(stop in sent for stop in stops)
    assert found or sent == text
