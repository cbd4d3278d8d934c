"""What is Redis' own: its window, its scripts' marks, and what happens when it is gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from redis.asyncio import Redis

from services.cloud_proxy.limits.fallback import PROBE_S, FallbackStore
from services.cloud_proxy.limits.memory import MemoryStore
from services.cloud_proxy.limits.redis_store import RedisStore
from services.cloud_proxy.limits.store import Reservation, StoreDown
from services.cloud_proxy.policy.limits import Granted, Limits, Refused, Remaining, Spent
from tests.integration.cloud_proxy.limits.test_contract import reservation, want
from tests.tools.redis_server import RedisServer

LIMITS = {"tenant": Limits(tokens_per_min=1_000, concurrent=5)}
KEY = "tandem:limits:{acme}:tenant"


@pytest.fixture
def mortal() -> Iterator[RedisServer]:
    """A server of its own, to be stopped."""
    with RedisServer() as server:
        yield server


async def test_seconds_leave_the_window(redis: RedisServer) -> None:
    store = RedisStore(redis.url, 2_000)
    now = int(time.time())
    async with Redis.from_url(redis.url, decode_responses=True) as client:
        await client.hset(KEY, mapping={f"t{now - 70}": 500, f"t{now - 30}": 300, "m1": 9})
        decision = await store.reserve("acme", LIMITS, want(100))
        assert decision == Granted(Remaining(None, 600, None))
        assert f"t{now - 70}" not in await client.hkeys(KEY)
        assert "m1" not in await client.hkeys(KEY)
        assert 0 < await client.pttl(KEY) <= 172_800_000
    no = await store.reserve("acme", LIMITS, want(700))
    assert isinstance(no, Refused)
    assert 29_000 <= (no.retry_after_ms or 0) <= 31_000
    await store.close()


async def test_a_release_that_overtakes_its_reservation_still_counts(redis: RedisServer) -> None:
    store = RedisStore(redis.url, 2_000)
    what = want(100)
    store.release(reservation(what, LIMITS))
    await store.flush()
    assert isinstance(await store.reserve("acme", LIMITS, what), Refused)
    assert await store.reserve("acme", LIMITS, want(0)) == Granted(Remaining(None, 1_000, None))
    await store.close()


async def test_a_cancelled_reservation_leaves_nothing_behind(mortal: RedisServer) -> None:
    store = RedisStore(mortal.url, 3_000)
    await store.reserve("acme", LIMITS, want(0))
    mortal.pause()
    waiting = asyncio.ensure_future(store.reserve("acme", LIMITS, want(500)))
    await asyncio.sleep(0.1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    mortal.resume()
    await store.flush()
    assert await store.reserve("acme", LIMITS, want(0)) == Granted(Remaining(None, 1_000, None))
    await store.close()


async def test_no_answer_in_time_is_down_and_never_a_hang(mortal: RedisServer) -> None:
    store = RedisStore(mortal.url, 100)
    await store.reserve("acme", LIMITS, want(0))
    mortal.pause()
    began = time.monotonic()
    with pytest.raises(StoreDown):
        await store.reserve("acme", LIMITS, want(500))
    assert time.monotonic() - began < 1.0
    mortal.resume()
    await asyncio.sleep(0.7)
    await store.flush()
    assert await store.reserve("acme", LIMITS, want(0)) == Granted(Remaining(None, 1_000, None))
    await store.close()


async def test_local_goes_on_alone_and_hands_over_when_redis_is_back(
    mortal: RedisServer, capfd: pytest.CaptureFixture[str]
) -> None:
    store = FallbackStore(RedisStore(mortal.url, 200), MemoryStore())
    first = want(100)
    assert await store.reserve("acme", LIMITS, first) == Granted(Remaining(None, 900, None))
    mortal.stop()
    began = time.monotonic()
    local = [want(200) for _ in range(8)]
    decisions = [await store.reserve("acme", LIMITS, what) for what in local]
    # The same limits, counted from nothing.
    assert [isinstance(decision, Granted) for decision in decisions] == [True] * 5 + [False] * 3
    assert time.monotonic() - began < 1.0
    store.settle(reservation(first, LIMITS), Spent(100, 0))
    for what in local[:5]:
        store.settle(reservation(what, LIMITS), Spent(50, 7))
    mortal.start()
    await asyncio.sleep(PROBE_S + 0.1)
    await store.flush()
    # What was granted alone is charged; the first one was lost with Redis' memory.
    decision = await store.reserve("acme", LIMITS, want(0))
    assert decision == Granted(Remaining(None, 750, None))
    log = "".join(capfd.readouterr())
    assert log.count("limit_store_down") == 1
    assert log.count("limit_store_back") == 1
    await store.close()


async def test_refuse_refuses_until_redis_is_back(mortal: RedisServer) -> None:
    store = FallbackStore(RedisStore(mortal.url, 200), None)
    mortal.stop()
    for _ in range(3):
        with pytest.raises(StoreDown):
            await store.reserve("acme", LIMITS, want())
    mortal.start()
    await asyncio.sleep(PROBE_S + 0.1)
    assert isinstance(await store.reserve("acme", LIMITS, want()), Granted)
    await store.close()


async def test_while_it_is_down_only_one_call_waits_for_it(mortal: RedisServer) -> None:
    store = FallbackStore(RedisStore(mortal.url, 300), MemoryStore())
    await store.reserve("acme", LIMITS, want(0))
    mortal.pause()
    await store.reserve("acme", LIMITS, want(0, lease_ms=1))
    await asyncio.sleep(PROBE_S)

    async def took() -> float:
        began = time.monotonic()
        await store.reserve("acme", {"tenant": Limits(tokens_per_min=1)}, want(0))
        return time.monotonic() - began

    times = await asyncio.gather(*(took() for _ in range(20)))
    assert sum(seconds > 0.2 for seconds in times) == 1
    mortal.resume()
    await store.close()


async def test_what_cannot_be_sent_is_kept_and_closing_does_not_hang(
    mortal: RedisServer, capfd: pytest.CaptureFixture[str]
) -> None:
    store = RedisStore(mortal.url, 100)
    mortal.stop()
    for number in range(300):
        store.settle(Reservation("acme", ("tenant",), str(number)), Spent(1, 1))
    began = time.monotonic()
    await store.close()
    assert time.monotonic() - began < 2.0
    assert "limit_endings_lost" in "".join(capfd.readouterr())
