"""Answers that go well."""

from __future__ import annotations

import pytest

from tandem.cloud.v1 import cloud_pb2
from tandem.common.v1 import chat_pb2
from tests.fakes.upstream_process import UpstreamProcess
from tests.integration.cloud_proxy.conftest import KEY, MakeProxy


async def test_streams_started_deltas_finished(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.script({"text": "one two three"})
    answer = await (await make_proxy()).collect("four words in here")
    assert [e.WhichOneof("event") for e in answer.events] == ["started", *["delta"] * 3, "finished"]
    assert answer.started.provider == "fake"
    assert answer.started.model_id == "fake-small"
    assert (answer.started.standin, answer.started.provider_calls) == (False, 1)
    assert answer.text == "one two three"
    usage = answer.finished.usage
    assert (usage.input_tokens, usage.output_tokens, usage.estimated) == (4, 3, False)
    assert usage.cost_micro_usd == 4 * 1 + 3 * 4
    assert answer.finished.finish_reason == chat_pb2.FINISH_REASON_STOP
    assert not answer.finished.HasField("mean_logprob")
    assert 0 < answer.finished.timings.ttft_ms <= answer.finished.timings.total_ms


async def test_sends_what_the_provider_needs(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    proxy = await make_proxy(small={"max_output_tokens": 50})
    few_shot = [
        chat_pb2.Message(role=chat_pb2.ROLE_USER, content="2+2"),
        chat_pb2.Message(role=chat_pb2.ROLE_ASSISTANT, content="4"),
    ]
    await proxy.collect(
        "3+3",
        system="Be brief.",
        few_shot=few_shot,
        max_output_tokens=999,
        sampling=chat_pb2.Sampling(temperature=0, seed=7, stop=["END"]),
        output=chat_pb2.OutputContract(labels=chat_pb2.Labels(values=["yes", "no"])),
    )
    (seen,) = upstream.seen()
    body = seen["body"]
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["messages"][0]["content"].startswith("Be brief.")
    assert '"yes", "no"' in body["messages"][0]["content"]
    assert body["stream_options"] == {"include_usage": True}
    assert (body["max_tokens"], body["temperature"], body["seed"]) == (50, 0, 7)
    assert body["stop"] == ["END"]
    assert seen["headers"]["authorization"] == f"Bearer {KEY}"
    assert "traceparent" not in seen["headers"]


async def test_usage_beside_choices_is_read(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.script({"text": "a b", "usage": "with_choices", "finish_reason": "length"})
    answer = await (await make_proxy()).collect("hi")
    assert answer.finished.usage.output_tokens == 2
    assert not answer.finished.usage.estimated
    assert answer.finished.finish_reason == chat_pb2.FINISH_REASON_LENGTH


async def test_without_usage_tokens_are_estimated(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.script({"text": "a b c d e f", "usage": "none"})
    usage = (await (await make_proxy()).collect("hi")).finished.usage
    assert usage.estimated
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert usage.cost_micro_usd > 0


async def test_tool_calls_are_put_together(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    calls = [["weather", '{"city": "Bern"}'], ["clock", "{}"]]
    upstream.script({"text": "", "tool_calls": calls, "finish_reason": "tool_calls"})
    tools = [chat_pb2.Tool(name="weather", description="tells it", parameters_json_schema="{}")]
    answer = await (await make_proxy()).collect("hi", tools=tools)
    finished = answer.finished
    assert finished.finish_reason == chat_pb2.FINISH_REASON_TOOL_CALLS
    assert [(c.id, c.name, c.arguments_json) for c in finished.tool_calls] == [
        ("call_0", "weather", '{"city": "Bern"}'),
        ("call_1", "clock", "{}"),
    ]
    assert upstream.seen()[0]["body"]["tools"][0]["function"]["name"] == "weather"


async def test_large_tier_says_that_it_is_a_standin(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    answer = await (await make_proxy()).collect("hi", tier=cloud_pb2.TIER_LARGE)
    assert answer.started.standin
    assert upstream.seen()[0]["model"] == "fake-large"


async def test_end_without_done_is_an_end_once_a_finish_reason_came(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.script({"text": "a b", "done": False})
    assert (await (await make_proxy()).collect("hi")).text == "a b"


async def test_silence_after_the_finish_reason_loses_nothing(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    # Lines: role, a, b, finish; then usage never comes.
    upstream.script({"text": "a b", "stall_after": 4})
    answer = await (await make_proxy()).collect("hi")
    assert answer.text == "a b"
    assert answer.finished.usage.estimated


async def test_proxies_of_the_environment_are_ignored(
    make_proxy: MakeProxy, upstream: UpstreamProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    upstream.script({"text": "straight"})
    assert (await (await make_proxy()).collect("hi")).text == "straight"
