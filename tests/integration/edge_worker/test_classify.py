"""`Classify` and `samples` over the wire: fake model for the rules, real one for the figures."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import numpy as np
import pytest

from services.edge_worker.chat_template import Turn
from services.edge_worker.classify import Classification
from services.edge_worker.runtime.onnx import OnnxRuntime
from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2
from tests.integration.edge_worker.process import Edge, edge
from tests.integration.edge_worker.test_real_model import load_builder

QUICK = {"TANDEM_FAKE_EDGE__DECODE_MS": "1", "TANDEM_FAKE_EDGE__PEAK": "3"}
PATIENT = (("deadline_ms", "110000"),)
LABELS = ["refund", "refund status", "lost card", "top up", "top up limit"]


async def classify(worker: Edge, text: str, labels: list[str]) -> edge_pb2.ClassifyResponse:
    request = edge_pb2.ClassifyRequest(text=text, labels=chat_pb2.Labels(values=labels))
    response: edge_pb2.ClassifyResponse = await worker.stub.Classify(request, metadata=PATIENT)
    return response


async def test_probabilities_are_normalized_and_sorted(tmp_path: Path) -> None:
    async with edge(tmp_path, QUICK) as one:
        responses = await asyncio.gather(
            *(classify(one, f"text {i} [[say:refund]]", LABELS) for i in range(20))
        )
        load = await one.load()
    for response in responses:
        chances = [label.probability for label in response.labels]
        assert sum(chances) == pytest.approx(1.0)
        assert chances == sorted(chances, reverse=True)
        assert {label.label for label in response.labels} == set(LABELS)
        assert response.labels[0].label == "refund"
        assert response.model_id == "fake-burn-1"
    assert load.active == 0
    assert load.kv_used_bytes == 0


async def test_many_labels_go_in_groups_that_fit_the_batch(tmp_path: Path) -> None:
    labels = [f"{a}{b}{c}" for a in "abcde" for b in "xyz" for c in "12"]
    async with edge(tmp_path, QUICK) as one:
        response = await classify(one, "which? [[say:cy2]]", labels)
    assert len(response.labels) == 30
    assert sum(label.probability for label in response.labels) == pytest.approx(1.0)
    assert response.labels[0].label == "cy2"


async def test_a_refusal_names_its_field(tmp_path: Path) -> None:
    async with edge(tmp_path, QUICK) as one:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await classify(one, "x", ["a"])
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert str(caught.value.details()).startswith("labels.values:")


async def test_samples_come_with_their_index_and_the_prompt_is_counted_once(
    tmp_path: Path,
) -> None:
    sampling = chat_pb2.Sampling(temperature=1.0, seed=11)
    async with edge(tmp_path, QUICK) as one:
        three = await one.ask("tell", sampling=sampling, samples=3, max_output_tokens=12)
        first = await one.ask("tell", sampling=sampling, max_output_tokens=12)
        load = await one.load()
    texts = ["", "", ""]
    for delta in three.deltas:
        texts[delta.sample] += delta.text
    assert texts[0] == first.text
    assert len(set(texts)) == 3
    assert three.kinds.count("started") == 1
    assert three.kinds.count("finished") == 3
    assert load.kv_used_bytes == 0


@pytest.mark.timeout(300)
async def test_figures_are_those_of_the_model(
    tmp_path: Path, real_model: Path, real_runtime: OnnxRuntime
) -> None:
    """Against logits of whole sequences, computed in one pass and without the engine."""
    text = "I want to know where my refund is."
    async with edge(
        tmp_path,
        {"TANDEM_EDGE__RUNTIME__MODEL_DIR": str(real_model)},
        "services.edge_worker.main",
    ) as one:
        response = await classify(one, text, LABELS)
    tokenizer, builder = load_builder(real_model)
    request = Classification(text, tuple(LABELS), "", ())
    prompt = builder.build([Turn("user", text)], request.system)
    codes = [tuple(tokenizer.encode_user(label)) for label in LABELS]
    ends = sorted(real_runtime.info.eos_ids)
    for label, code in zip(LABELS, codes, strict=True):
        rows = real_runtime.score([*prompt, *code])[len(prompt) - 1 :].astype(np.float64)
        chance = 1.0
        for place, row in enumerate(rows):
            before = code[:place]
            ways = {c[place] for c in codes if c[:place] == before and len(c) > place}
            stops = ends if before in codes and ways else []
            if not ways:
                break
            weights = np.exp(row - row.max())
            total = weights[sorted(ways)].sum() + weights[stops].sum()
            part = weights[code[place]] if place < len(code) else weights[stops].sum()
            chance *= float(part / total)
        served = next(one.probability for one in response.labels if one.label == label)
        assert served == pytest.approx(chance, abs=5e-3), label
