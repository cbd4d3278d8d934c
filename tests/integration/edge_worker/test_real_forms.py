"""The shipped model held to schemas, expressions and labels, over the wire."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from services.common.contract import check_pattern, check_schema
from tandem.common.v1 import chat_pb2
from tests.fakes.schemas import random_schema
from tests.integration.edge_worker.process import Answer, Edge, edge

# `python -m benchmarks.forms` runs 200.
SCHEMAS = 40
MOST_TOKENS = 400
PATIENT = (("deadline_ms", "110000"),)
STOP = chat_pb2.FINISH_REASON_STOP


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worker(tmp_path_factory: pytest.TempPathFactory, real_model: Path) -> AsyncIterator[Edge]:
    env = {"TANDEM_EDGE__RUNTIME__MODEL_DIR": str(real_model)}
    folder = Path(tmp_path_factory.mktemp("forms"))
    async with edge(folder, env, "services.edge_worker.main") as one:
        yield one


async def ask(worker: Edge, text: str, cap: int = MOST_TOKENS, **form: object) -> Answer:
    contract = chat_pb2.OutputContract(**form)  # type: ignore[arg-type]
    return await worker.ask(text, PATIENT, output=contract, max_output_tokens=cap)


@pytest.mark.timeout(300)
@pytest.mark.asyncio(loop_scope="module")
async def test_schema_answers_parse_and_fit(worker: Edge) -> None:
    schemas = [json.dumps(random_schema(random.Random(seed))) for seed in range(SCHEMAS)]
    calls = [ask(worker, "Make up an order as JSON.", json_schema=schema) for schema in schemas]
    answers = await asyncio.gather(*calls)
    for schema, answer in zip(schemas, answers, strict=True):
        assert answer.finished.finish_reason == STOP, answer.text
        assert check_schema("f", schema)(answer.text), answer.text


@pytest.mark.parametrize(
    "pattern",
    [r"\d{4}-\d{2}-\d{2}", "(yes|no), because [a-z ]{3,40}\\.", r"#[0-9a-f]{6}", "[甲乙]"],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_expression_answers_match(worker: Edge, pattern: str) -> None:
    answer = await ask(worker, "When was the moon landing, and why?", regex=pattern)
    assert answer.finished.finish_reason == STOP
    assert check_pattern("f", pattern)(answer.text), answer.text


@pytest.mark.asyncio(loop_scope="module")
async def test_labels_are_always_one_of_them(worker: Edge) -> None:
    values = ["refund", "refund status", "card lost", "其他"]
    texts = [f"Customer {i} says: my card is gone. Which topic?" for i in range(8)]
    labels = chat_pb2.Labels(values=values)
    answers = await asyncio.gather(*(ask(worker, text, 0, labels=labels) for text in texts))
    assert {answer.text for answer in answers} <= set(values)


@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_cut_by_its_cap_says_so(worker: Edge) -> None:
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "string"}}})
    answer = await ask(worker, "Answer as JSON.", cap=2, json_schema=schema)
    assert answer.finished.finish_reason == chat_pb2.FINISH_REASON_LENGTH
    assert answer.finished.usage.output_tokens == 2


@pytest.mark.asyncio(loop_scope="module")
async def test_refusals_name_the_field(worker: Edge) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(worker, "hi", json_schema='{"$ref": "http://example.com/a.json"}')
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "output.json_schema" in str(caught.value.details())
