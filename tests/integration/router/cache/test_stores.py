"""One contract over every store, on real servers; a server that is down is a StoreDown in time."""

from __future__ import annotations

import asyncio
import time
import uuid

import numpy as np
import pytest

from services.router.cache.pgvector_store import PgVectors
from services.router.cache.redis_store import RedisKeyValues
from services.router.cache.store import KeyValueStore, StoreDown, Values, VectorStore
from tests.tools.postgres_server import PostgresServer
from tests.tools.redis_server import RedisServer


def unit(*heads: float) -> Values:
    vector = np.zeros(512, np.float32)
    vector[: len(heads)] = heads
    return vector / np.linalg.norm(vector)


def name() -> str:
    return uuid.uuid4().hex


async def test_values_are_kept_replaced_and_dropped(values: KeyValueStore) -> None:
    key, other = name(), name()
    assert await values.get(key) is None
    await values.put(key, b"\x00one", 60)
    await values.put(other, b"other", 60)
    await values.put(key, b"two", 60)
    assert await values.get(key) == b"two"
    await values.drop(key)
    await values.drop(key)
    assert await values.get(key) is None
    assert await values.get(other) == b"other"


async def test_a_values_time_ends(values: KeyValueStore) -> None:
    key = name()
    await values.put(key, b"x", 0.05)
    await asyncio.sleep(0.15)
    assert await values.get(key) is None


async def test_the_nearest_of_the_scope_come_best_first(vectors: VectorStore) -> None:
    scope, other = name(), name()
    rows = {name(): vector for vector in (unit(1, 0), unit(1, 0.5), unit(0, 1))}
    for row, vector in rows.items():
        await vectors.put(scope, row, f"q {row}", vector, row.encode(), 60)
    await vectors.put(other, name(), "elsewhere", unit(1, 0), b"no", 60)
    found = await vectors.nearest(scope, unit(1, 0), 2)
    assert [one.row for one in found] == list(rows)[:2]
    assert found[0].cosine == pytest.approx(1.0, abs=1e-5)
    assert found[1].cosine == pytest.approx(float(unit(1, 0) @ unit(1, 0.5)), abs=1e-5)
    assert found[1].question == f"q {found[1].row}"
    assert found[1].value == found[1].row.encode()
    assert np.allclose(found[1].vector, unit(1, 0.5), atol=1e-6)


async def test_rows_are_replaced_dropped_and_end(vectors: VectorStore) -> None:
    scope, row, short = name(), name(), name()
    await vectors.put(scope, row, "one", unit(1), b"1", 60)
    await vectors.put(scope, row, "two", unit(1), b"2", 60)
    await vectors.put(scope, short, "short", unit(1), b"s", 0.05)
    await asyncio.sleep(0.15)
    assert [one.question for one in await vectors.nearest(scope, unit(1), 9)] == ["two"]
    await vectors.drop(row)
    await vectors.drop(row)
    assert list(await vectors.nearest(scope, unit(1), 9)) == []


async def test_the_number_of_rows_is_bounded(vectors: VectorStore) -> None:
    scope = name()
    for number in range(400):
        await vectors.put(scope, name(), "q", unit(1, number), b"x", 60 + number)
    left = await vectors.nearest(scope, unit(1), 1_000)
    assert 0 < len(left) <= 300


async def test_redis_down_and_back(redis: RedisServer) -> None:
    store, key = RedisKeyValues(redis.url, timeout_ms=200), name()
    await store.put(key, b"x", 60)
    redis.pause()
    started = time.monotonic()
    with pytest.raises(StoreDown):
        await store.get(key)
    assert time.monotonic() - started < 5
    redis.resume()
    redis.stop()
    for call in (store.get(key), store.put(key, b"y", 60), store.drop(key)):
        with pytest.raises(StoreDown):
            await call
    redis.start()
    await store.put(key, b"z", 60)
    assert await store.get(key) == b"z"
    await store.close()


async def test_postgres_down_and_back(postgres: PostgresServer) -> None:
    store, scope = PgVectors(postgres.url, timeout_ms=5_000, max_rows=10), name()
    await store.put(scope, name(), "q", unit(1), b"x", 60)
    postgres.stop()
    with pytest.raises(StoreDown):
        await store.nearest(scope, unit(1), 1)
    started = time.monotonic()
    with pytest.raises(StoreDown):
        await store.nearest(scope, unit(1), 1)
    assert time.monotonic() - started < 1
    postgres.start()
    await asyncio.sleep(2.1)
    assert [one.value for one in await store.nearest(scope, unit(1), 1)] == [b"x"]
    await store.close()
