"""What may leave."""

from __future__ import annotations

from pathlib import Path

import pytest

import services.cloud_proxy as package
from services.cloud_proxy.redaction.cleared import ClearedText, Seal
from services.cloud_proxy.redaction.gate import Gate, Rule
from services.cloud_proxy.redaction.redactor import PiiBlocked
from services.cloud_proxy.request import Role, Tool, ToolCall, Turn, texts
from services.common.pii.detector import StructuredDetector
from services.common.pii.span import PiiSpan
from tests.unit.cloud_proxy.requests import request

EMAIL = "zhang.wei@example.com"


class BrokenDetector:
    def find(self, text: str) -> tuple[PiiSpan, ...]:
        raise RuntimeError(f"cannot read {text}")


async def test_clean_text_is_cleared_unchanged() -> None:
    gate = Gate(StructuredDetector(), Rule.REFUSE)
    cleared = (await gate.clear(request("hello", system="be brief"))).request
    assert cleared.system.text == "be brief"
    assert cleared.messages[0].content.text == "hello"
    assert all(isinstance(text, ClearedText) for text in texts(cleared))


async def test_refusal_names_kinds_and_fields_and_no_values() -> None:
    call = ToolCall("c1", "send", f'{{"to": "{EMAIL}"}}')
    turns = (Turn(Role.USER, "138 1234 5678", (), ""), Turn(Role.ASSISTANT, "", (call,), ""))
    tools = (Tool("send", f"like {EMAIL}", "{}"),)
    with pytest.raises(PiiBlocked) as caught:
        await Gate(StructuredDetector(), Rule.REFUSE).clear(request(messages=turns, tools=tools))
    message = caught.value.message
    for part in (
        "EMAIL, PHONE", "messages[0].content", "messages[1].tool_calls[0].arguments_json",
        "tools[0].description",
    ):  # fmt: skip
        assert part in message
    assert EMAIL not in message
    assert "138" not in message
    assert (caught.value.code.value, caught.value.reason) == ("PERMISSION_DENIED", "PII_BLOCKED")
    assert not caught.value.retryable


async def test_long_texts_are_screened_off_the_loop_with_the_same_result() -> None:
    gate = Gate(StructuredDetector(), Rule.REFUSE)
    await gate.clear(request("word " * 2_000))
    with pytest.raises(PiiBlocked):
        await gate.clear(request("word " * 2_000 + EMAIL))


async def test_many_fields_are_counted_and_not_all_named() -> None:
    turns = tuple(Turn(Role.USER, EMAIL, (), "") for _ in range(20))
    with pytest.raises(PiiBlocked, match="and 12 more"):
        await Gate(StructuredDetector(), Rule.REFUSE).clear(request(messages=turns))


async def test_a_failing_detector_refuses_and_tells_nothing() -> None:
    with pytest.raises(PiiBlocked) as caught:
        await Gate(BrokenDetector(), Rule.REFUSE).clear(request("secret words"))
    assert "secret words" not in caught.value.message
    assert caught.value.__cause__ is None


async def test_allow_lets_everything_through() -> None:
    cleared = await Gate(BrokenDetector(), Rule.ALLOW).clear(request(EMAIL))
    assert cleared.finds is None
    assert cleared.request.messages[0].content.text == EMAIL


def test_nobody_else_clears_text() -> None:
    with pytest.raises(TypeError):
        ClearedText("x", Seal())
    root = Path(package.__path__[0])
    users = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "SEAL" in path.read_text(encoding="utf-8")
    }
    assert users == {"redaction/cleared.py", "redaction/gate.py"}


def test_cleared_text_does_not_show_itself() -> None:
    import services.cloud_proxy.redaction.cleared as cleared

    text = ClearedText("very private", cleared.SEAL)
    assert "private" not in repr(text)
    assert "private" not in str(text)


async def test_redact_replaces_and_keeps_what_undoes_it() -> None:
    cleared = await Gate(StructuredDetector(), Rule.REDACT).clear(request(f"write to {EMAIL}"))
    assert cleared.request.messages[0].content.text == "write to [EMAIL_1]"
    assert cleared.values == {"EMAIL1": EMAIL}
    assert cleared.finds is not None
    assert cleared.finds.fields == {"messages[0].content": {"EMAIL"}}
    assert EMAIL not in repr(cleared)


@pytest.mark.parametrize("rule", [Rule.REFUSE, Rule.REDACT])
async def test_whatever_breaks_refuses(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PiiBlocked):
        await Gate(BrokenDetector(), rule).clear(request("secret words"))

    def broken(*_: object) -> None:
        raise KeyError(EMAIL)

    monkeypatch.setattr("services.cloud_proxy.redaction.screen.map_text", broken)
    with pytest.raises(PiiBlocked) as caught:
        await Gate(StructuredDetector(), rule).clear(request("hello"))
    assert EMAIL not in caught.value.message
    assert caught.value.__context__ is None


async def test_a_tenant_has_its_own_rule() -> None:
    gate = Gate(StructuredDetector(), Rule.REFUSE, {"open": Rule.ALLOW})
    cleared = await gate.clear(request(EMAIL), "open")
    assert cleared.request.messages[0].content.text == EMAIL
    assert cleared.finds is not None
    assert cleared.finds.kinds == {"EMAIL": 1}
    with pytest.raises(PiiBlocked):
        await gate.clear(request(EMAIL), "acme")
