"""Texts of many callers share a call; who leaves costs nothing; bounds hold."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
import pytest

from services.common.deadline import Budget
from services.common.embedding.runner import Vector
from services.common.errors import DeadlineExceeded, EngineFailed, QueueFull
from services.edge_worker.config import EmbedSettings
from services.edge_worker.embed.batcher import EmbedBatcher


class Model:
    """Vectors that say which text they are of."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, ...]] = []
        self.called = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def __call__(self, texts: Sequence[str]) -> list[Vector]:
        self.batches.append(tuple(texts))
        self.called.set()
        self.go.wait(10)
        if "boom" in texts:
            raise RuntimeError("asked to fail")
        return [Vector(np.array([len(text)], np.float32), 0.0) for text in texts]


def budget(ms: float = 10_000) -> Budget:
    now = time.monotonic()
    return Budget(10_000, 0, now, now + ms / 1000.0)


@asynccontextmanager
async def batcher(model: Model, **changes: float) -> AsyncIterator[EmbedBatcher]:
    one = EmbedBatcher(model, "m", EmbedSettings.model_validate({"max_wait_ms": 30, **changes}))
    one.start()
    try:
        yield one
    finally:
        model.go.set()
        await one.stop()


async def test_callers_share_a_batch_and_each_gets_its_own() -> None:
    model = Model()
    async with batcher(model, max_batch_size=8) as one:
        calls = [one.embed(["x" * i, "y" * (i + 10)], budget()) for i in range(1, 5)]
        answers = await asyncio.gather(*calls)
    for i, vectors in enumerate(answers, 1):
        assert [int(vector.values[0]) for vector in vectors] == [i, i + 10]
    assert len(model.batches) == 1


async def test_a_batch_has_its_bound() -> None:
    model = Model()
    async with batcher(model, max_batch_size=3) as one:
        await one.embed([str(i) for i in range(8)], budget())
    assert [len(batch) for batch in model.batches] == [3, 3, 2]


async def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    model = Model()
    model.go.clear()
    async with batcher(model, max_batch_size=1, max_queue=2, max_wait_ms=0) as one:
        first = asyncio.create_task(one.embed(["a"], budget()))
        await asyncio.to_thread(model.called.wait, 10)
        second = asyncio.create_task(one.embed(["b", "c"], budget()))
        await asyncio.sleep(0)
        with pytest.raises(QueueFull) as caught:
            await one.embed(["d"], budget())
        model.go.set()
        await asyncio.gather(first, second)
    assert caught.value.retry_after_ms


async def test_texts_of_a_caller_that_left_are_not_computed() -> None:
    model = Model()
    model.go.clear()
    async with batcher(model, max_batch_size=1, max_wait_ms=0) as one:
        first = asyncio.create_task(one.embed(["a"], budget()))
        await asyncio.to_thread(model.called.wait, 10)
        with pytest.raises(DeadlineExceeded):
            await one.embed(["late"], budget(20))
        model.go.set()
        await first
        await one.embed(["b"], budget())
    assert model.batches == [("a",), ("b",)]


async def test_a_failed_batch_fails_its_own_callers_only() -> None:
    model = Model()
    async with batcher(model, max_batch_size=2) as one:
        with pytest.raises(EngineFailed):
            await one.embed(["boom", "with it"], budget())
        assert len(await one.embed(["fine"], budget())) == 1
