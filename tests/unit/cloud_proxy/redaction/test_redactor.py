"""Personal data replaced in every field, and nothing else changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.cloud_proxy.redaction.redactor import PiiBlocked, Redacted, redact
from services.cloud_proxy.redaction.restorer import restore, restore_json
from services.cloud_proxy.redaction.screen import DetectorFailed, Screen
from services.cloud_proxy.request import Output, Role, Sampling, Tool, ToolCall, Turn, texts
from services.common.pii.detector import StructuredDetector
from services.common.pii.span import PiiSpan
from tests.unit.cloud_proxy.requests import request

SCREEN = Screen(StructuredDetector())
EMAIL = "zhang.wei@example.com"
PHONE = "13812345678"
CARD = "4111 1111 1111 1111"
VALUES = [EMAIL, PHONE, CARD, "11010519491231002X", "GB82 WEST 1234 5698 7654 32", "203.0.113.7"]


def done(text: str = "", **changes: Any) -> Redacted:
    return redact(request(text, **changes), SCREEN)


def hidden(text: str) -> str:
    return done(text).request.messages[0].content


def test_clean_requests_are_not_touched() -> None:
    asked = request("hello [PHONE_1]", system="be brief")
    result = redact(asked, SCREEN)
    assert result.request is asked
    assert (result.values, result.finds.kinds) == ({}, {})


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        (f"我的手机是{PHONE}，谢谢", "我的手机是[PHONE_1]，谢谢"),
        (f"{PHONE} and 13987654321", "[PHONE_1] and [PHONE_2]"),
        (f"{PHONE}, 138 1234 5678, １３８１２３４５６７８", "[PHONE_1], [PHONE_1], [PHONE_1]"),
        (f"{EMAIL} or ZHANG.WEI@example.com", "[EMAIL_1] or [EMAIL_1]"),
        ("电话 1234567 与 1234567", "电话 [PHONE_1] 与 [PHONE_1]"),
        (
            "password: Tr0ub4dor&3. Is Tr0ub4dor&3 good?",
            "password: [SECRET_1]. Is [SECRET_1] good?",
        ),
        (f"[{PHONE}]", "[[PHONE_1]]"),
        (f"[PHONE_1] is not {PHONE}", "[PHONE_1] is not [PHONE_2]"),
        (f"( phone-1 ) is not {PHONE}", "( phone-1 ) is not [PHONE_2]"),
        (f"\\u005bPHONE_1\\u005d {PHONE}", "\\u005bPHONE_1\\u005d [PHONE_2]"),
        (f'{{"tel": {PHONE}, "n": 1.50}}', '{"tel": "[PHONE_1]", "n": 1.50}'),
        (f'{{"tel":"{PHONE}","tel":"x"}}', '{"tel":"[PHONE_1]","tel":"x"}'),
        ('{"password":"Tr0ub4dor&3","user":"bob"}', '{"password":"[SECRET_1]","user":"bob"}'),
        (f'{{"{EMAIL}": [1]}}', '{"[EMAIL_1]": [1]}'),
        (f'got {{"note": "\\n{PHONE}"}}', 'got {"note": "\\n[PHONE_1]"}'),
        ("密码是Tr0\\nub4dor&3", "密码是[SECRET_1]"),
        (
            r'got {"tel": "\uff11\uff13\uff18\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18"}',
            'got {"tel": "[PHONE_1]"}',
        ),
    ],
)
def test_what_is_sent(text: str, sent: str) -> None:
    assert hidden(text) == sent


def test_one_value_has_one_placeholder_in_all_fields() -> None:
    call = ToolCall("c1", "send", json.dumps({"to": [EMAIL], "tel": "\u0031" + PHONE[1:]}))
    turns = (
        Turn(Role.USER, f"write to {EMAIL}", (), ""),
        Turn(Role.ASSISTANT, "", (call,), ""),
        Turn(Role.TOOL, f'{{"sent": "{EMAIL}"}}', (), "c1"),
    )
    tools = (Tool("send", f"like {EMAIL}", json.dumps({"description": f"to {EMAIL}"})),)
    output = Output(labels=(EMAIL, "other"))
    result = done(
        system=EMAIL,
        messages=turns,
        few_shot=(Turn(Role.USER, PHONE, (), ""),),
        tools=tools,
        output=output,
        sampling=Sampling(stop=(EMAIL,)),
    )
    sent = list(texts(result.request))
    assert not any(EMAIL in text or PHONE in text for text in sent)
    assert sum(text.count("[EMAIL_1]") for text in sent) == 8
    assert json.loads(result.request.messages[1].tool_calls[0].arguments) == {
        "to": ["[EMAIL_1]"], "tel": "[PHONE_1]"
    }  # fmt: skip
    assert result.finds.kinds == {"EMAIL": 8, "PHONE": 2}
    assert result.finds.fields["messages[1].tool_calls[0].arguments_json"] == {"EMAIL", "PHONE"}


def test_escaped_and_nested_json_is_searched() -> None:
    escaped = "".join(f"\\u{ord(c):04x}" for c in PHONE)
    inner = json.dumps({"deep": json.dumps({"mail": EMAIL, "list": [PHONE]})})
    result = done(f'{{"a": "{escaped}", "b": {json.dumps(inner)}}}')
    sent = json.loads(result.request.messages[0].content)
    assert sent["a"] == "[PHONE_1]"
    deep = json.loads(json.loads(sent["b"])["deep"])
    assert deep == {"mail": "[EMAIL_1]", "list": ["[PHONE_1]"]}
    back = json.loads(restore_json(result.request.messages[0].content, result.values))
    assert back == {"a": PHONE, "b": inner}


def test_a_known_value_is_hidden_in_earlier_fields_too() -> None:
    result = done("Account: 0012345", system="see 0012345.")
    assert result.request.system == "see [ACCOUNT_1]."


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("output.regex", {"output": Output(regex=f"^{EMAIL}$")}),
        ("output.json_schema", {"output": Output(json_schema=f'{{"pattern": "{EMAIL}"}}')}),
        ("messages[0].tool_call_id", {"messages": (Turn(Role.TOOL, "x", (), PHONE),)}),
    ],
)
def test_where_no_placeholder_fits_it_is_refused(path: str, changes: dict[str, Any]) -> None:
    with pytest.raises(PiiBlocked) as caught:
        done(**changes)
    assert path in caught.value.message
    assert EMAIL not in caught.value.message
    assert PHONE not in caught.value.message


class Stubborn:
    """Finds the last word of a text, whatever it is."""

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        start = text.rfind(" ") + 1
        return (PiiSpan("PHONE", max(0, start - 3), len(text)),) if text else ()


def test_what_is_still_found_after_replacing_is_refused() -> None:
    with pytest.raises(PiiBlocked) as caught:
        redact(request("one two three four five six"), Screen(Stubborn()))
    assert "four" not in caught.value.message


class Broken:
    def find(self, text: str) -> tuple[PiiSpan, ...]:
        raise RuntimeError(f"cannot read {text}")


def test_a_failing_detector_tells_its_type_and_no_text() -> None:
    with pytest.raises(DetectorFailed) as caught:
        redact(request("secret words"), Screen(Broken()))
    assert str(caught.value) == "RuntimeError at messages[0].content"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


PARTS = st.sampled_from(
    [
        *VALUES,
        *(
            "[PHONE_1]",
            "[email_1]",
            "PHONE_2",
            "(BANK_CARD_1)",
            "【IBAN_1】",
            "\\u005bPHONE_1\\u005d",
        ),
        *(
            "[PHONE_",
            "_1]",
            "1",
            "密码是",
            "电话",
            "[",
            "]",
            "<",
            ">",
            "{",
            "**",
            "，",
            '"',
            "\\",
            "\n",
        ),
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(PARTS, max_size=12))
def test_an_echo_comes_back_as_it_was_sent(parts: list[str]) -> None:
    text = " ".join(parts)
    result = done(text)
    sent = result.request.messages[0].content
    assert restore(sent, result.values) == text
    for value in parts:
        if value in VALUES:
            assert value not in sent


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.sampled_from([*VALUES, "[PHONE_1]", 'a"b\\', "x"]) | st.integers(0, 99) | st.none(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["to", "tel", "id", "note"]), inner, max_size=4)
        ),
    )
)
def test_json_stays_json_both_ways(value: Any) -> None:
    call = ToolCall("c", "send", json.dumps({"arguments": value}))
    result = done(messages=(Turn(Role.ASSISTANT, "", (call,), ""),))
    sent = result.request.messages[0].tool_calls[0].arguments
    json.loads(sent)
    assert not any(value in sent for value in VALUES)
    assert json.loads(restore_json(sent, result.values)) == {"arguments": value}
