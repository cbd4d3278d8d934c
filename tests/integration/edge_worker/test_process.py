"""The edge worker as a process, with a fake runtime, over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2
from tests.integration.edge_worker.process import Answer, ask, details, edge, idle

# Sleeping steps: the figures are then the scheduler's and not the machine's.
QUICK = {
    "TANDEM_FAKE_EDGE__BURN": "false",
    "TANDEM_FAKE_EDGE__DECODE_MS": "2",
    "TANDEM_FAKE_EDGE__PREFILL_TOKEN_MS": "0.01",
}
ENDLESS = {**QUICK, "TANDEM_FAKE_EDGE__ANSWER_TOKENS": "0"}


async def test_streams_a_whole_answer(tmp_path: Path) -> None:
    async with edge(tmp_path, {**QUICK, "TANDEM_FAKE_EDGE__BURN": "true"}) as one:
        answer = await one.ask("[[say:Grüße, 世界!]]", request_id="r-1")
        load = await one.load()
    assert answer.text == "Grüße, 世界!"
    assert answer.kinds[0] == "started"
    assert answer.kinds[-1] == "finished"
    assert set(answer.kinds[1:-1]) == {"delta"}
    assert answer.started.model_id == "fake-burn-1"
    assert answer.started.lane == edge_pb2.LANE_SIMPLE
    done = answer.finished
    assert done.finish_reason == chat_pb2.FINISH_REASON_STOP
    assert done.usage.input_tokens == answer.started.input_tokens
    assert done.usage.output_tokens == len("Grüße, 世界!".encode()) + 1
    times = done.timings
    assert times.queue_ms + times.prefill_ms <= times.ttft_ms <= times.total_ms
    assert done.mean_logprob == pytest.approx(done.min_logprob, abs=1e-6)
    assert done.mean_margin == pytest.approx(10.0)
    assert load.tpot_ms > 0
    assert load.ttft_ms > 0


async def test_log_probabilities_come_with_the_text(tmp_path: Path) -> None:
    async with edge(tmp_path, QUICK) as one:
        answer = await one.ask("[[say:ok]]", logprobs=True, top_logprobs=2)
    tokens = [token for delta in answer.deltas for token in delta.tokens]
    assert [token.id for token in tokens][:2] == list(b"ok")
    assert all(len(token.alternatives) == 2 and token.logprob < 0 for token in tokens)


async def test_labels_and_stop_strings(tmp_path: Path) -> None:
    labels = chat_pb2.OutputContract(labels=chat_pb2.Labels(values=["refund", "invoice"]))
    stop = chat_pb2.Sampling(stop=["END"])
    async with edge(tmp_path, QUICK) as one:
        label = await one.ask("[[say:invoices]]", output=labels)
        cut = await one.ask("[[say:one END two]]", sampling=stop)
    assert label.text == "invoice"
    assert cut.text == "one "


async def test_batch_is_shared_and_answers_are_as_alone(tmp_path: Path) -> None:
    async with edge(tmp_path, QUICK) as one:
        prompts = [f"question {i}" for i in range(20)]
        alone = [(await one.ask(text)).text for text in prompts]
        before = await one.load()
        calls: list[Awaitable[Answer]] = [one.ask(text) for text in prompts]
        together = [answer.text for answer in await asyncio.gather(*calls)]
        after = await one.load()
    assert together == alone
    steps, rows = after.steps - before.steps, after.rows - before.rows
    assert rows == sum(len(text) for text in alone)
    assert steps < rows / 2
    assert after.shared_steps > before.shared_steps


async def test_cancel_frees_the_slot_within_a_step(tmp_path: Path) -> None:
    slow = {**ENDLESS, "TANDEM_FAKE_EDGE__DECODE_MS": "300"}
    async with edge(tmp_path, slow) as one:
        call = one.stub.Generate(ask("a"))
        async for event in call:
            if event.WhichOneof("event") == "delta":
                break
        before = await one.load()
        assert before.active == 1
        call.cancel()
        after = await one.until(idle)
    # The step that runs when the cancel arrives, and one more if it came between two.
    assert after.steps - before.steps <= 2
    assert after.kv_used_bytes == 0


async def test_full_queue_says_when_to_come_back(tmp_path: Path) -> None:
    small = {
        **ENDLESS,
        "TANDEM_EDGE__LANES__SIMPLE__MAX_BATCH_SIZE": "1",
        "TANDEM_EDGE__LANES__SIMPLE__MAX_QUEUE": "1",
    }
    async with edge(tmp_path, small) as one:
        # One after the other: together, the second could find the first still waiting.
        running = one.stub.Generate(ask("a", max_output_tokens=900))
        await anext(aiter(running))
        waiting = one.stub.Generate(ask("a", max_output_tokens=900))
        await one.until(lambda load: load.queued == 1)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await one.ask("a")
        running.cancel()
        waiting.cancel()
        await one.until(idle)
    info, retry = details(caught.value)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (info.reason, info.metadata["retryable"]) == ("QUEUE_FULL", "true")
    assert retry.retry_delay.ToMilliseconds() > 0


async def test_slow_reader_is_cut_off_and_the_others_go_on(tmp_path: Path) -> None:
    loud = {**ENDLESS, "TANDEM_FAKE_EDGE__TOKEN_REPEAT": "20000"}
    async with edge(tmp_path, loud) as one:
        slow = one.stub.Generate(ask("a", max_output_tokens=900))
        await anext(aiter(slow))
        load = await one.until(idle)
        assert load.steps < 890, "decoding went on for a caller that does not read"
        brisk = await one.ask("b", max_output_tokens=20)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in slow:
                pass
    assert len(brisk.text) == 20 * 20_000
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert details(caught.value)[0].reason == "SLOW_READER"


async def test_deadline_ends_the_answer(tmp_path: Path) -> None:
    async with edge(tmp_path, ENDLESS) as one:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await one.ask("a", metadata=(("deadline_ms", "300"),), max_output_tokens=900)
        load = await one.until(idle)
        with pytest.raises(grpc.aio.AioRpcError) as late:
            await one.ask("a", metadata=(("deadline_ms", "300"), ("elapsed_ms", "300")))
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert load.kv_used_bytes == 0
    assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_long_prompt_does_not_stall_a_running_answer(tmp_path: Path) -> None:
    slow = {**ENDLESS, "TANDEM_FAKE_EDGE__PREFILL_TOKEN_MS": "0.5"}
    async with edge(tmp_path, slow) as one:
        running = one.stub.Generate(ask("a", lane=edge_pb2.LANE_COMPLEX, max_output_tokens=2000))
        reader = aiter(running)
        await anext(reader)
        whole = asyncio.create_task(
            one.ask("x" * 2000, lane=edge_pb2.LANE_COMPLEX, max_output_tokens=1)
        )
        during = 0
        while not whole.done():
            await anext(reader)
            during += 1
        running.cancel()
        assert (await whole).started.input_tokens > 2000
    # 2,000 tokens in chunks of at most 64 leave room for some 30 decode steps.
    assert during >= 15


async def test_invalid_requests_name_the_field(tmp_path: Path) -> None:
    async with edge(tmp_path, QUICK) as one:
        with pytest.raises(grpc.aio.AioRpcError) as empty:
            await one.ask("")
        with pytest.raises(grpc.aio.AioRpcError) as long:
            await one.ask("x" * 2000)
        with pytest.raises(grpc.aio.AioRpcError) as watch:
            await anext(aiter(one.stub.WatchLoad(edge_pb2.WatchLoadRequest(interval_ms=99))))
        with pytest.raises(grpc.aio.AioRpcError) as embed:
            await one.stub.Embed(edge_pb2.EmbedRequest(texts=["a"]))
    assert empty.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "messages[0].content" in (empty.value.details() or "")
    assert details(long.value)[0].reason == "CONTEXT_TOO_LONG"
    assert "1024" in (long.value.details() or "")
    assert watch.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert embed.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_engine_failure_is_unavailable_and_passes(tmp_path: Path) -> None:
    async with edge(tmp_path, {**QUICK, "TANDEM_FAKE_EDGE__FAIL_ON": "boom"}) as one:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await one.ask("boom")
        assert (await one.ask("[[say:fine]]")).text == "fine"
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert details(caught.value)[0].reason == "ENGINE_FAILED"


async def test_health_names_the_service(tmp_path: Path) -> None:
    async with edge(tmp_path, QUICK) as one:
        health = health_pb2_grpc.HealthStub(one.channel)
        for name in ("", "readiness", "liveness", "tandem.edge.v1.EdgeWorkerService"):
            found = await health.Check(health_pb2.HealthCheckRequest(service=name))
            assert found.status == health_pb2.HealthCheckResponse.SERVING
