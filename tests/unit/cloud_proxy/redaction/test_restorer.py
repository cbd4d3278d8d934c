"""Values put back, whatever the model made of the placeholders and however the stream is split."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.cloud_proxy.redaction.placeholders import MAX_UNFINISHED_CHARS
from services.cloud_proxy.redaction.restorer import Restorer, restore, restore_calls, restore_json
from services.cloud_proxy.request import ToolCall

VALUES = {
    "PHONE1": "138 1234 5678",
    "PHONE12": "+44 20 7946 0958",
    "EMAIL1": "zhang.wei@example.com",
    "APIKEY1": 'k"e\\y[PHONE_1]',
    "CNRESIDENTID2": "11010519491231002X",
}
NAMES = {
    "PHONE_1": "PHONE1",
    "PHONE_12": "PHONE12",
    "EMAIL_1": "EMAIL1",
    "API_KEY_1": "APIKEY1",
    "CN_RESIDENT_ID_2": "CNRESIDENTID2",
}
PAIRS = [*zip("[(<{【［⟦（", "])>}】］⟧）", strict=True)]
NOISE = [
    *("call ", "，请拨打", " [", "]", " (see ", "\\", "\\u00", "\\u005b", "[PHO", " PHONE_", "[ "),
    *("[PHONE_9]", " phone_1 ", "[[", " \n", "P", "x", "[EMAIL", "1", "_", "{", "\\\\\\", " API "),
    *("【", " 。"),
]


def split(draw: random.Random, text: str) -> list[str]:
    """Cut at random places, more often in short pieces."""
    pieces, place = [], 0
    while place < len(text):
        size = draw.choice([1, 1, 2, 3, 5, 8, 20])
        pieces.append(text[place : place + size])
        place += size
    return pieces


def stream(pieces: list[str], *, in_json: bool = False) -> str:
    restorer = Restorer(VALUES, in_json=in_json)
    return "".join([*map(restorer.feed, pieces), restorer.flush()])


def mutated(draw: random.Random, name: str) -> str:
    """A placeholder as a model may write it."""
    name = draw.choice([name, name, name.lower(), name.title(), name.swapcase()])
    name = name.replace("_", draw.choice(["_", "_", " ", "-", " _ ", "\\_", "\\u005f", "  "]))
    left, right = draw.choice(PAIRS)
    if draw.random() < 0.25:
        case = draw.choice([str.lower, str.upper])
        slashes = "\\" * draw.choice([1, 2])
        left, right = (f"{slashes}u{case(f'{ord(char):04x}')}" for char in (left, right))
    elif draw.random() < 0.15:
        left, right = "\\" + left, "\\" + right
    pad = draw.choice(["", "", " ", "  ", "\\u0020"])
    return f"{left}{pad}{name}{pad}{right}"


def test_ten_thousand_random_splits_give_what_the_whole_gives() -> None:
    draw = random.Random(20_261)
    for _ in range(10_000):
        parts = [
            mutated(draw, draw.choice(list(NAMES))) if draw.random() < 0.5 else draw.choice(NOISE)
            for _ in range(draw.randint(1, 8))
        ]
        text = "".join(parts)
        assert stream(split(draw, text)) == restore(text, VALUES), text


def test_a_mutated_placeholder_never_reaches_the_caller() -> None:
    draw = random.Random(7)
    words = ["call ", " or ", "，请", ".\n", " x "]
    for _ in range(10_000):
        name = draw.choice(list(NAMES))
        before, after = draw.choice(words), draw.choice(words)
        written = mutated(draw, name)
        value = VALUES[NAMES[name]]
        escape = re.search(r"(\\+)[uU]", written)
        # Once escaped the place is inside a JSON string, twice inside one within one.
        for _ in range(len(escape[1]) if escape else 0):
            value = json.dumps(value)[1:-1]
        assert stream(split(draw, before + written + after)) == before + value + after, written


@settings(max_examples=1_000, deadline=None)
@given(
    st.lists(st.sampled_from([*NOISE, *(f"[{n}]" for n in NAMES), *NAMES]) | st.text(max_size=4)),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_any_text_split_anywhere(parts: list[str], seed: int, in_json: bool) -> None:
    text = "".join(parts)
    whole = restore(text, VALUES, in_json=in_json)
    assert stream(split(random.Random(seed), text), in_json=in_json) == whole
    assert stream(list(text), in_json=in_json) == whole


@pytest.mark.parametrize(
    ("written", "restored"),
    [
        ("[PHONE_1]", "138 1234 5678"),
        ("[PHONE_12]", "+44 20 7946 0958"),
        ("**PHONE_1**", "**138 1234 5678**"),
        ("[[PHONE_1]]", "[138 1234 5678]"),
        (r"\[PHONE\_1\]", "138 1234 5678"),
        (r"C:\[PHONE_1]", r"C:\138 1234 5678"),
        (r"\u005bapi_key_1\u005D", r"k\"e\\y[PHONE_1]"),
        (r"[\u0050\u0048\u006fne \u0031]", "138 1234 5678"),
        ("[ P H O N E _ 1 ]", "138 1234 5678"),
        ("[API_KEY_1]", 'k"e\\y[PHONE_1]'),
        ("[PHONE_3] [PHONE] [1] [phone_1", "[PHONE_3] [PHONE] [1] [phone_1"),
        # Without its bracket the name alone is still a name.
        ("[PHONE_1", "[138 1234 5678"),
        ("XPHONE_1 PHONE_1X PHONE_12", "XPHONE_1 PHONE_1X +44 20 7946 0958"),
        ("phone_1 = f(x)[0]", "phone_1 = f(x)[0]"),
    ],
)
def test_forms(written: str, restored: str) -> None:
    assert restore(written, VALUES) == restored


def test_only_what_may_be_a_placeholder_is_held_back() -> None:
    restorer = Restorer(VALUES)
    assert restorer.feed("see [this") == "see [this"
    assert restorer.feed(" or [PHO") == " or "
    assert restorer.feed("TO]") == "[PHOTO]"
    assert restorer.feed("[PHONE_1") == ""
    assert restorer.feed("]!") == "138 1234 5678!"
    assert restorer.flush() == ""


def test_without_values_nothing_is_held() -> None:
    restorer = Restorer({})
    assert restorer.feed("[PHONE_") == "[PHONE_"
    assert restorer.flush() == ""


def test_long_rows_of_openings_take_linear_time() -> None:
    for text in ("[" * 50_000, "\\" * 50_000, "[P " * 20_000, "P" * 50_000, "PHONE_" * 20_000):
        assert stream([text]) == text
    text = '{"tel": "[PHONE_1]", "mail": "(EMAIL_1)"}, ' * 5_000
    assert restore(text, VALUES).count(VALUES["PHONE1"]) == 5_000


def test_what_is_held_back_has_a_bound() -> None:
    for unit in ("_", "\\" * 8 + "u0020", "\\" * 8 + "_"):
        restorer = Restorer(VALUES)
        text = "\\" * 8 + "u005bPHONE" + unit * 500
        assert len(restorer.feed(text)) > len(text) - MAX_UNFINISHED_CHARS
        for size in (1, 7, 300):
            pieces = [text[i : i + size] for i in range(0, len(text), size)]
            assert stream(pieces) == text


def test_values_are_escaped_inside_json() -> None:
    for arguments in (
        '{"key": "[API_KEY_1]", "n": 1.50, "to": ["[phone 1]"]}',
        r'{"key": "\u005bAPI_KEY_1\u005d", "n": 1.50, "to": ["\u005bPHONE_1\u005d"]}',
    ):
        (call,) = restore_calls([ToolCall("c", "send", arguments)], VALUES)
        assert json.loads(call.arguments) == {
            "key": VALUES["APIKEY1"], "n": 1.5, "to": [VALUES["PHONE1"]]
        }  # fmt: skip
        assert "1.50" in call.arguments


def test_json_inside_json_stays_json() -> None:
    inner = json.dumps({"key": "[API_KEY_1]"})
    restored = restore_json(json.dumps({"body": inner}), VALUES)
    assert json.loads(json.loads(restored)["body"]) == {"key": VALUES["APIKEY1"]}


def test_broken_arguments_are_restored_as_text() -> None:
    assert restore_json('{"to": "[PHONE_1]', VALUES) == '{"to": "138 1234 5678'
    assert restore_json('{"to": "[API_KEY_1]', VALUES) == r'{"to": "k\"e\\y[PHONE_1]'
