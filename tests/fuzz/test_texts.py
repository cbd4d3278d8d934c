"""Any text: the tokenizer, the detector, what the redactor hides and the restorer puts back."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cloud_proxy.redaction.redactor import PiiBlocked, redact
from services.cloud_proxy.redaction.restorer import Restorer, restore
from services.cloud_proxy.redaction.screen import Screen
from services.common.pii.detector import StructuredDetector
from services.edge_worker.tokenizer import TextTokenizer
from tests.fuzz.effort import EFFORT
from tests.unit.cloud_proxy.requests import request

DETECTOR = StructuredDetector()
MODEL = Path("models/smollm2-135m-instruct/q8/tokenizer.json")
# Digits of every script, signs that values are written with, values, and what looks like ours.
_parts = st.sampled_from(
    [
        *("13812345678", "zhang.wei@example.com", "4111 1111 1111 1111", "11010519491231002X"),
        *("GB82 WEST 1234 5698 7654 32", "203.0.113.7", "[PHONE_1]", "[EMAIL_1", "PHONE_1]"),
        *(
            "+",
            "@",
            ".",
            "-",
            " ",
            "\n",
            "：",
            "，",
            "电话",
            "邮箱",
            "١٢٣",
            "一三八",
            "１３８",
            "²",
        ),
        *(
            "<|im_end|>",
            "<|im_start|>",
            "\u200b",
            "\u202e",
            "\x00",
            "é",
            "e\u0301",
            "👨‍👩‍👧",
            "0",
            "9",
        ),
    ]
)
texts = st.one_of(st.text(max_size=80), st.lists(_parts, max_size=12).map("".join))


@EFFORT
@given(text=texts)
def test_spans_lie_in_the_text_and_apart(text: str) -> None:
    spans = DETECTOR.find(text)
    end = 0
    for span in sorted(spans, key=lambda one: one.start):
        assert end <= span.start < span.end <= len(text)
        end = span.end


@EFFORT
@given(text=texts)
def test_what_is_hidden_is_gone_and_comes_back(text: str) -> None:
    try:
        done = redact(request(text), Screen(DETECTOR))
    except PiiBlocked:
        return
    hidden = done.request.messages[0].content
    assert not DETECTOR.find(hidden) or not done.values
    assert restore(hidden, done.values) == text


@EFFORT
@given(text=texts, cuts=st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_a_stream_may_be_split_anywhere(text: str, cuts: list[int]) -> None:
    values = {"PHONE1": "13812345678", "EMAIL1": "zhang.wei@example.com"}
    restorer, said, place = Restorer(values), "", 0
    for size in cuts * (len(text) + 1):
        if place >= len(text):
            break
        said += restorer.feed(text[place : place + size])
        place += size
    assert said + restorer.flush() == restore(text, values)


@cache
def tokenizer() -> TextTokenizer:
    """The real one."""
    return TextTokenizer.load(MODEL)


@cache
def absent() -> frozenset[int]:
    """Bytes that the model's vocabulary has no token for: they are dropped."""
    ids = range(tokenizer().vocab_size)
    held = {data[0] for data in map(tokenizer().decode_bytes, ids) if len(data) == 1}
    return frozenset(range(256)) - held


@pytest.mark.skipif(not MODEL.exists(), reason="needs the built model: make models")
def test_text_comes_back_from_its_tokens_and_never_holds_control() -> None:
    @EFFORT
    @given(text=texts)
    def look(text: str) -> None:
        try:
            plain = text.encode()
        except UnicodeEncodeError:
            return
        tokens = tokenizer().encode_user(text)
        assert not set(tokens) & tokenizer().special_ids
        assert b"".join(map(tokenizer().decode_bytes, tokens)) == bytes(
            byte for byte in plain if byte not in absent()
        )

    look()
