"""The worker with the shipped model, as it is deployed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest

from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2
from tests.integration.edge_worker.process import Answer, edge

STREAMS = 20
MODULE = "services.edge_worker.main"
# Both cores and whatever else runs here: the budget is no part of what is tested.
PATIENT = (("deadline_ms", "110000"),)
TOPICS = (
    *("the sea", "a fox", "winter", "bread", "the moon", "trains", "honey", "a clock", "rivers"),
    *("chess", "a lighthouse", "rain", "mountains", "tea", "a library", "gardens", "a violin"),
    *("deserts", "bees", "bridges"),
)


@pytest.mark.timeout(300)
async def test_twenty_streams_together_equal_each_alone(tmp_path: Path, real_model: Path) -> None:
    env = {"TANDEM_EDGE__RUNTIME__MODEL_DIR": str(real_model)}
    prompts = [f"Write one sentence about {topic}." for topic in TOPICS[:STREAMS]]
    async with edge(tmp_path, env, MODULE) as one:
        alone = [await one.ask(text, PATIENT, max_output_tokens=16) for text in prompts]
        calls: list[Awaitable[Answer]] = [
            one.ask(text, PATIENT, max_output_tokens=16) for text in prompts
        ]
        together = await asyncio.gather(*calls)
        load = await one.load()
        label = await one.ask(
            "Is the sky blue? Answer yes or no.",
            PATIENT,
            output=chat_pb2.OutputContract(labels=chat_pb2.Labels(values=["yes", "no"])),
        )
    assert [answer.text for answer in together] == [answer.text for answer in alone]
    assert all(answer.text for answer in alone)
    for one_alone, one_together in zip(alone, together, strict=True):
        assert one_together.finished.mean_logprob == pytest.approx(
            one_alone.finished.mean_logprob, abs=1e-3
        )
    assert load.shared_steps > 0
    assert load.kv_used_bytes == 0
    assert label.text in ("yes", "no")
    assert label.finished.finish_reason == chat_pb2.FINISH_REASON_STOP
    assert alone[0].started.lane == edge_pb2.LANE_SIMPLE
