"""A provider of Anthropic's form, over a real server."""

from __future__ import annotations

from typing import Any

import pytest

from tandem.common.v1 import chat_pb2
from tests.fakes.upstream_process import UpstreamProcess
from tests.integration.cloud_proxy.conftest import KEY, MakeProxy, tier
from tests.integration.cloud_proxy.test_failures import NO_RETRY, fails

ANTHROPIC = {"api": "anthropic"}


async def test_an_answer(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    upstream.script({"text": "in a few words"})
    answer = await (await make_proxy(small=ANTHROPIC)).collect("hi", system="Be brief.")
    assert answer.text == "in a few words"
    usage = answer.finished.usage
    assert (usage.output_tokens, usage.estimated) == (4, False)
    assert answer.finished.finish_reason == chat_pb2.FINISH_REASON_STOP
    seen = upstream.seen()[0]
    assert seen["body"]["system"] == "Be brief."
    assert seen["headers"]["x-api-key"] == KEY
    assert seen["headers"]["anthropic-version"] == "2023-06-01"
    assert "authorization" not in seen["headers"]


async def test_tool_calls(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    upstream.script({"text": "", "tool_calls": [["look", '{"q": "x"}']]})
    tool = chat_pb2.Tool(name="look", parameters_json_schema='{"type": "object"}')
    finished = (await (await make_proxy(small=ANTHROPIC)).collect("hi", tools=[tool])).finished
    assert finished.finish_reason == chat_pb2.FINISH_REASON_TOOL_CALLS
    assert [(c.name, c.arguments_json) for c in finished.tool_calls] == [("look", '{"q": "x"}')]


async def test_personal_data_is_put_back(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    upstream.script({"echo": True})
    text = "write to ada@example.org please"
    assert (await (await make_proxy(small=ANTHROPIC)).collect(text)).text == text
    assert "ada@example.org" not in str(upstream.seen())


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ({"status": 400, "error_code": "invalid_request_error"}, "UPSTREAM_REFUSED"),
        ({"status": 401, "error_code": "authentication_error"}, "UPSTREAM_REFUSED"),
        ({"status": 429, "error_code": "rate_limit_error"}, "UPSTREAM_OVERLOADED"),
        ({"status": 529, "error_code": "overloaded_error"}, "UPSTREAM_OVERLOADED"),
        ({"error_after": 1, "error_code": "overloaded_error"}, "UPSTREAM_OVERLOADED"),
        ({"content_type": "text/html"}, "UPSTREAM_MALFORMED"),
        ({"bad_json_after": 0}, "UPSTREAM_MALFORMED"),
        ({"stall_after": 1}, "UPSTREAM_STALLED"),
        ({"cut_after": 1}, "UPSTREAM_CUT"),
        ({"end_after": 1}, "UPSTREAM_CUT"),
        ({"ttft_ms": 3000}, "UPSTREAM_STALLED"),
    ],
)
async def test_each_failure_has_its_own_reason(
    make_proxy: MakeProxy, upstream: UpstreamProcess, behaviour: dict[str, Any], reason: str
) -> None:
    upstream.default(**behaviour)
    _, error, _ = await fails(await make_proxy(small={**ANTHROPIC, **NO_RETRY}))
    assert error.remote_reason == reason
    assert len(upstream.seen()) == 1


async def test_a_cut_answer_is_counted_and_not_tried_again(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.script({"text": "a b c d", "cut_after": 5})
    _, error, text = await fails(await make_proxy(small=ANTHROPIC))
    assert (error.remote_reason, text) == ("UPSTREAM_CUT", "a b")
    assert len(upstream.seen()) == 1


async def test_it_stands_behind_another(make_proxy: MakeProxy, upstream: UpstreamProcess) -> None:
    upstream.script({"status": 503}, {"text": "from the other"})
    other = tier(upstream.base_url, provider="anthropic", model="fake-large", **ANTHROPIC)
    answer = await (await make_proxy(small={**NO_RETRY, "fallbacks": [other]})).collect("hi")
    assert (answer.text, answer.started.provider) == ("from the other", "anthropic")
