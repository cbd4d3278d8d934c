"""Values stay inside and placeholders outside: a recording upstream is searched for both."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from tandem.common.v1 import chat_pb2
from tests.fakes.upstream_process import UpstreamProcess
from tests.integration.cloud_proxy.conftest import MakeProxy
from tests.integration.cloud_proxy.test_failures import fails

EMAIL = "zhang.wei@example.com"
PHONE = "13812345678"
CARD = "4111 1111 1111 1111"
SECRET = 'Tr0ub4"dor\\3'
VALUES = (EMAIL, PHONE, CARD, SECRET)
PLACEHOLDER = re.compile(r"(?:PHONE|EMAIL|BANK.CARD|SECRET).{0,3}\d", re.IGNORECASE)


def everything(upstream: UpstreamProcess) -> str:
    """All that the upstream has seen, headers too, escapes undone."""
    seen = json.dumps(upstream.seen(), ensure_ascii=False)
    return seen + seen.replace("\\", "") + json.dumps(upstream.seen())


@pytest.mark.parametrize("chunk_chars", [0, 1, 3, 7])
async def test_an_echo_reaches_the_caller_whole_and_the_upstream_never_sees_a_value(
    make_proxy: MakeProxy, upstream: UpstreamProcess, chunk_chars: int
) -> None:
    upstream.default(echo=True, chunk_chars=chunk_chars)
    text = (
        f"拨打{PHONE}或写信给{EMAIL}, card {CARD}, password: {SECRET} and [PHONE_7] again {PHONE}"
    )
    answer = await (await make_proxy()).collect(text)
    assert answer.text == text
    seen = everything(upstream)
    assert not any(value in seen for value in VALUES)
    assert "拨打[PHONE_1]或写信给[EMAIL_1], card [BANK_CARD_1]" in seen


async def test_what_a_model_makes_of_placeholders_is_restored(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    proxy = await make_proxy()
    draw = random.Random(5)
    forms = [
        "[PHONE_1]", "[phone_1]", "[ Phone 1 ]", "(PHONE_1)", "**PHONE_1**", "【PHONE_1】",
        r"\[PHONE\_1\]", r"\u005bPHONE_1\u005d", r"\u005Bphone\u005f1\u005D", "[PHONE-1]",
    ]  # fmt: skip
    for _ in range(30):
        written = [draw.choice(forms) for _ in range(4)]
        upstream.script({"text": " or ".join(written), "chunk_chars": draw.randint(1, 9)})
        answer = await proxy.collect(f"my phone is {PHONE}")
        assert answer.text.replace("*", "") == " or ".join([PHONE] * 4), written
        assert not PLACEHOLDER.search(answer.text)
    assert PHONE not in everything(upstream)


def _filled() -> dict[str, Any]:
    call = chat_pb2.ToolCall(
        id="c1", name="send", arguments_json=json.dumps({"to": EMAIL, "password": SECRET})
    )
    user, assistant, tool = chat_pb2.ROLE_USER, chat_pb2.ROLE_ASSISTANT, chat_pb2.ROLE_TOOL
    schema = json.dumps({"type": "object", "description": f"for {EMAIL}"})
    return {
        "system": f"You serve {EMAIL}.",
        "few_shot": [chat_pb2.Message(role=user, content=f"like {PHONE}")],
        "messages": [
            chat_pb2.Message(role=user, content=f"card {CARD}"),
            chat_pb2.Message(role=assistant, tool_calls=[call]),
            chat_pb2.Message(role=tool, tool_call_id="c1", content=f'{{"phone": {PHONE}}}'),
        ],
        "tools": [
            chat_pb2.Tool(name="send", description=f"as {PHONE}", parameters_json_schema=schema)
        ],
        "sampling": chat_pb2.Sampling(stop=[EMAIL]),
    }


@pytest.mark.parametrize(
    "output",
    [
        chat_pb2.OutputContract(labels=chat_pb2.Labels(values=[EMAIL, "other"])),
        chat_pb2.OutputContract(json_schema=json.dumps({"enum": [PHONE, CARD]})),
    ],
)
async def test_every_field_is_redacted_and_stays_valid(
    make_proxy: MakeProxy, upstream: UpstreamProcess, output: Any
) -> None:
    await (await make_proxy()).collect(output=output, **_filled())
    seen = everything(upstream)
    assert not any(value in seen for value in (*VALUES, json.dumps(SECRET)[1:-1]))
    (request,) = upstream.seen()
    arguments = request["body"]["messages"][3]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"to": "[EMAIL_1]", "password": "[SECRET_1]"}
    assert json.loads(request["body"]["messages"][4]["content"]) == {"phone": "[PHONE_1]"}


async def test_tool_arguments_come_back_as_valid_json(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    arguments = r'{"to": "\u005bEMAIL_1\u005d", "password": "[secret 1]", "n": 1.50}'
    upstream.script({"text": "", "tool_calls": [["send", arguments]]})
    answer = await (await make_proxy()).collect(**_filled())
    (call,) = answer.finished.tool_calls
    assert json.loads(call.arguments_json) == {"to": EMAIL, "password": SECRET, "n": 1.5}


async def test_values_in_json_answers_are_escaped(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.script({"text": '{"password": "[SECRET_1]"}', "chunk_chars": 2})
    output = chat_pb2.OutputContract(json_schema='{"type": "object"}')
    answer = await (await make_proxy()).collect(f"password: {SECRET}", output=output)
    assert json.loads(answer.text) == {"password": SECRET}


async def test_a_cut_answer_ends_before_a_half_placeholder(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.script({"text": "call [PHONE_1]", "chunk_chars": 5, "cut_after": 3})
    _, _, text = await fails(await make_proxy(), text=f"call {PHONE}")
    assert text == "call "


async def test_a_tenant_may_have_a_rule_of_its_own(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    proxy = await make_proxy(pii_tenants={"strict": "refuse", "open": "allow"})
    upstream.default(echo=True)
    _, error, _ = await fails(proxy, text=PHONE, metadata=proxy.metadata("strict"))
    assert error.remote_reason == "PII_BLOCKED"
    assert upstream.seen() == []
    await proxy.collect(f"call {PHONE}", metadata=proxy.metadata("acme"))
    assert PHONE not in everything(upstream)
    await proxy.collect(f"call {PHONE}", metadata=proxy.metadata("open"))
    assert PHONE in everything(upstream)


async def test_each_call_that_leaves_is_audited_without_values(
    make_proxy: MakeProxy, upstream: UpstreamProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    proxy = await make_proxy()
    await proxy.collect("nothing private")
    await proxy.collect(**_filled())
    out, err = capfd.readouterr()
    events = [line for line in (out + err).splitlines() if "egress" in line]
    assert len(events) == 2
    for part in ("acme", "fake", "small", "redact", "EMAIL", "messages[2].content"):
        assert part in events[1]
    assert not any(value in out + err for value in (*VALUES, json.dumps(SECRET)[1:-1]))
