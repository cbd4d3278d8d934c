"""One contract for every store of limits."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Mapping

import pytest

from services.cloud_proxy.limits.memory import MemoryStore
from services.cloud_proxy.limits.redis_store import RedisStore
from services.cloud_proxy.limits.store import LimitStore, Reservation
from services.cloud_proxy.policy.limits import (
    Decision,
    Granted,
    Limit,
    Limits,
    Refused,
    Remaining,
    Spent,
    Want,
)
from tests.tools.redis_server import RedisServer

LIMITS = {
    "tenant": Limits(10, 1_000, 5, 500),
    "key:ci": Limits(requests_per_min=8, tokens_per_min=900),
}


def want(tokens: int = 100, micro_usd: int = 10, lease_ms: int = 60_000) -> Want:
    return Want(uuid.uuid4().hex, tokens, micro_usd, lease_ms)


def reservation(
    what: Want, limits: Mapping[str, Limits] = LIMITS, tenant: str = "acme"
) -> Reservation:
    return Reservation(tenant, tuple(limits), what.id)


def refused(decision: Decision) -> Refused:
    assert isinstance(decision, Refused)
    return decision


async def test_grants_until_the_first_limit_of_any_scope(store: LimitStore) -> None:
    limits = {"tenant": Limits(10, 1_000), "key:ci": Limits(tokens_per_min=300)}
    for left in (200, 100, 0):
        decision = await store.reserve("acme", limits, want())
        assert isinstance(decision, Granted)
        assert decision.remaining.tokens == left
    no = refused(await store.reserve("acme", limits, want()))
    assert no.which is Limit.TOKENS
    assert no.remaining == Remaining(requests=7, tokens=0)
    # The key is full, its tenant is not; and nothing was taken from it by the refusal.
    other = await store.reserve("acme", {"tenant": limits["tenant"]}, want(700))
    assert other == Granted(Remaining(requests=6, tokens=0))


async def test_tenants_are_apart(store: LimitStore) -> None:
    limits = {"tenant": Limits(requests_per_min=1)}
    assert isinstance(await store.reserve("acme", limits, want()), Granted)
    assert isinstance(await store.reserve("acme", limits, want()), Refused)
    assert isinstance(await store.reserve("other", limits, want()), Granted)


async def test_settle_gives_back_what_was_not_used(store: LimitStore) -> None:
    first = want(900, 400)
    await store.reserve("acme", LIMITS, first)
    store.settle(reservation(first), Spent(50, 20))
    store.settle(reservation(first), Spent(1, 1))
    await store.flush()
    decision = await store.reserve("acme", LIMITS, want(100, 10))
    assert decision == Granted(Remaining(requests=6, tokens=750, micro_usd=470))


async def test_release_gives_back_everything(store: LimitStore) -> None:
    limits = {"tenant": Limits(1, 100, 1, 10)}
    for _ in range(5):
        what = want(100, 10)
        decision = await store.reserve("acme", limits, what)
        assert decision == Granted(Remaining(0, 0, 0))
        store.release(reservation(what, limits))
        await store.flush()


async def test_more_than_was_reserved_counts(store: LimitStore) -> None:
    limits = {"tenant": Limits(tokens_per_min=200, micro_usd_per_day=100)}
    what = want(100, 10)
    await store.reserve("acme", limits, what)
    store.settle(reservation(what, limits), Spent(500, 40))
    await store.flush()
    no = refused(await store.reserve("acme", limits, want(1, 1)))
    assert no.remaining == Remaining(None, 0, 60)


async def test_concurrency_ends_with_the_lease(store: LimitStore) -> None:
    limits = {"tenant": Limits(concurrent=1)}
    await store.reserve("acme", limits, want(lease_ms=150))
    no = refused(await store.reserve("acme", limits, want()))
    assert (no.which, no.retry_after_ms) == (Limit.CONCURRENCY, 1_000)
    await asyncio.sleep(0.2)
    assert isinstance(await store.reserve("acme", limits, want()), Granted)


async def test_a_late_settle_changes_nothing(store: LimitStore) -> None:
    limits = {"tenant": Limits(tokens_per_min=1_000)}
    what = want(100, lease_ms=50)
    await store.reserve("acme", limits, what)
    await asyncio.sleep(0.1)
    store.settle(reservation(what, limits), Spent(0, 0))
    await store.flush()
    assert await store.reserve("acme", limits, want(0)) == Granted(Remaining(None, 900, None))


@pytest.mark.parametrize(
    ("limits", "which"),
    [
        (Limits(tokens_per_min=50), Limit.TOKENS),
        (Limits(requests_per_min=0), Limit.REQUESTS),
        (Limits(concurrent=0), Limit.CONCURRENCY),
        (Limits(micro_usd_per_day=5), Limit.BUDGET),
    ],
)
async def test_what_never_fits_has_no_retry(
    store: LimitStore, limits: Limits, which: Limit
) -> None:
    no = refused(await store.reserve("acme", {"tenant": limits}, want()))
    assert (no.which, no.retry_after_ms) == (which, None)


async def test_fifty_parallel_calls_of_a_hundred_fit_ten_times_into_a_thousand(
    store: LimitStore,
) -> None:
    limits = {"tenant": Limits(tokens_per_min=1_000)}
    decisions = await asyncio.gather(*(store.reserve("acme", limits, want()) for _ in range(50)))
    assert sum(isinstance(decision, Granted) for decision in decisions) == 10


@pytest.mark.parametrize("seed", range(8))
async def test_both_stores_decide_alike(redis: RedisServer, seed: int) -> None:
    """Random steps; only the times to wait may differ, by what passes in between."""
    memory, shared = MemoryStore(), RedisStore(redis.url, timeout_ms=5_000)
    draw = random.Random(seed)
    running: list[Want] = []
    for _ in range(150):
        if running and draw.random() < 0.5:
            what = running.pop(draw.randrange(len(running)))
            spent = Spent(draw.randrange(what.tokens + 1), draw.randrange(what.micro_usd + 1))
            for store in (memory, shared):
                if seed % 2:
                    store.settle(reservation(what), spent)
                else:
                    store.release(reservation(what))
            await shared.flush()
            continue
        what = want(draw.randrange(1, 200), draw.randrange(1, 60))
        here = await memory.reserve("acme", LIMITS, what)
        there = await shared.reserve("acme", LIMITS, what)
        assert type(here) is type(there)
        assert here.remaining == there.remaining
        if isinstance(here, Refused) and isinstance(there, Refused):
            assert here.which == there.which
            assert abs((here.retry_after_ms or 0) - (there.retry_after_ms or 0)) <= 2_000
        else:
            running.append(what)
    await shared.close()
