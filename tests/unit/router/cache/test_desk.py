"""Look, keep, forget: a failing part is a miss, a leader that leaves is followed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from services.common.embedding.runner import Vector
from services.common.vocabulary import FallbackType, Level, Reason, Target
from services.router.ask import Ask
from services.router.cache.checked_embedder import CheckedEmbedder
from services.router.cache.desk import CacheDesk, Look
from services.router.cache.key import Key, key_of
from services.router.cache.memory import MemoryKeyValues, MemoryVectors
from services.router.cache.semantic import SemanticCache
from services.router.cache.store import StoreDown
from services.router.execute.last_resort import last_resort
from services.router.execute.trail import Reply, Trail
from services.router.policy.facts import Screening
from services.router.policy_store import VersionedPolicy
from tandem.common.v1 import chat_pb2
from tests.unit.router.builders import SHIPPED
from tests.unit.router.test_executor import make_ask

POLICY = VersionedPolicy(SHIPPED, "v1")
GOOD = Reply(
    Level.L3,
    Target.CLOUD_LARGE,
    Reason.DEFAULT,
    FallbackType.NONE,
    "An answer.",
    chat_pb2.FINISH_REASON_STOP,
)


@dataclass
class ByLetters:
    """Vectors of letter counts: like texts are near."""

    broken: str = ""
    model_id: str = "letters"

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        if self.broken == "raises":
            raise RuntimeError("broken")
        return [Vector(self._values(text), float(self.broken == "unknown")) for text in texts]

    def _values(self, text: str) -> Any:
        values = np.zeros(500 if self.broken == "size" else 512, np.float32)
        if self.broken == "constant":
            text = "x"
        for char in text.lower():
            values[ord(char) % 500] += 1
        if self.broken == "nan":
            values[0] = np.nan
        return values / np.linalg.norm(values)


class Down:
    """A store that is down."""

    async def get(self, *_: Any) -> Any:
        raise StoreDown("down")

    put = nearest = drop = get

    async def close(self) -> None:
        """Nothing to end."""


@dataclass
class Rig:
    """A desk, its clock, and requests for it."""

    desk: CacheDesk
    now: list[float]

    async def look(self, text: str, request_id: str = "r1", ms: float = 1_000) -> tuple[Ask, Look]:
        ask = replace(make_ask(), request_id=request_id)
        ask.request.messages[0].content = text
        key = key_of(ask, Screening(), POLICY)
        assert isinstance(key, Key)
        return ask, await self.desk.look(ask, key, ms)

    async def answered(self, text: str, reply: Reply | None = GOOD, request_id: str = "r1") -> None:
        ask, look = await self.look(text, request_id)
        self.desk.done(ask, look, reply)
        await asyncio.sleep(0.01)


def rig(broken: str = "", store: Any = None, vectors: Any = None) -> Rig:
    now = [1_000.0]
    semantic = SemanticCache(
        vectors or MemoryVectors(100, lambda: now[0]), CheckedEmbedder(ByLetters(broken))
    )
    store = store or MemoryKeyValues(100_000, lambda: now[0])
    return Rig(CacheDesk(store, semantic, lambda: now[0]), now)


async def test_an_answer_serves_equal_and_like_questions() -> None:
    made = rig()
    await made.answered("how do I reset my password")
    _, equal = await made.look("How do I reset my password?")
    _, like = await made.look("how do I reset my passwords")
    assert equal.hit is not None
    assert equal.hit[1] is Reason.CACHE_EXACT
    assert like.hit is not None
    assert like.hit[1] is Reason.CACHE_SEMANTIC


@pytest.mark.parametrize("broken", ["raises", "nan", "size", "constant", "unknown"])
async def test_a_broken_embedder_makes_no_hit_and_fails_nothing(broken: str) -> None:
    made = rig(broken)
    await made.answered("how do I reset my password")
    await made.answered("how do I bake bread")
    _, like = await made.look("how do I reset my passwords")
    assert like.hit is None
    _, equal = await made.look("how do I reset my password")
    assert equal.hit is not None


@pytest.mark.parametrize(
    ("broken", "wrong"), [("", ""), ("constant", "CONSTANT"), ("nan", "NOT_FINITE")]
)
def test_rubbish_is_found_at_start(broken: str, wrong: str) -> None:
    assert CheckedEmbedder(ByLetters(broken)).check() == wrong


async def test_stores_that_are_down_are_a_miss() -> None:
    made = rig(store=Down(), vectors=Down())
    await made.answered("how do I reset my password")
    _, look = await made.look("how do I reset my password")
    assert look.hit is None
    await made.desk.forget("t", "r1")


@pytest.mark.parametrize(
    "bad",
    [
        None,
        replace(GOOD, degraded=True),
        replace(GOOD, partial=True),
        replace(GOOD, level=Level.L4, target=Target.FALLBACK),
        replace(GOOD, finish_reason=chat_pb2.FINISH_REASON_LENGTH),
        replace(GOOD, text="  "),
    ],
)
async def test_only_whole_undegraded_answers_are_kept(bad: Reply | None) -> None:
    made = rig()
    await made.answered("hello there", bad)
    _, look = await made.look("hello there")
    assert look.hit is None


async def test_waiters_get_the_leaders_answer() -> None:
    made = rig()
    ask, leader = await made.look("hello there")
    assert leader.leads
    waiter = asyncio.create_task(made.look("hello there"))
    await asyncio.sleep(0.01)
    assert not waiter.done()
    made.desk.done(ask, leader, GOOD)
    _, look = await waiter
    assert look.hit is not None
    assert not look.leads


async def test_one_waiter_follows_a_leader_that_left() -> None:
    made = rig()
    ask, leader = await made.look("hello there")
    waiters = [asyncio.create_task(made.look("hello there")) for _ in range(3)]
    await asyncio.sleep(0.01)
    made.desk.done(ask, leader, None)
    await asyncio.sleep(0.01)
    done = [task for task in waiters if task.done()]
    assert len(done) == 1
    next_ask, follower = done[0].result()
    assert follower.leads
    made.desk.done(next_ask, follower, GOOD)
    rest = [await task for task in waiters if task is not done[0]]
    assert all(look.hit for _, look in rest)


async def test_a_leader_that_fell_short_frees_all() -> None:
    made = rig()
    ask, leader = await made.look("hello there")
    waiters = [asyncio.create_task(made.look("hello there")) for _ in range(3)]
    await asyncio.sleep(0.01)
    made.desk.done(ask, leader, replace(GOOD, degraded=True))
    for task in waiters:
        _, look = await task
        assert look.hit is None
        assert not look.leads


async def test_a_waiter_has_its_own_patience_and_its_end_hurts_nobody() -> None:
    made = rig()
    ask, leader = await made.look("hello there")
    _, impatient = await made.look("hello there", ms=20)
    assert impatient.hit is None
    waiter = asyncio.create_task(made.look("hello there"))
    gone = asyncio.create_task(made.look("hello there"))
    await asyncio.sleep(0.01)
    gone.cancel()
    made.desk.done(ask, leader, GOOD)
    _, look = await waiter
    assert look.hit is not None


async def test_an_old_answer_serves_only_as_a_last_resort_and_marked() -> None:
    made = rig()
    await made.answered("hello there")
    made.now[0] += 4_000
    ask, look = await made.look("hello there")
    assert look.hit is None
    assert look.stale is not None
    trail = Trail(stale=look.stale.stale)
    reply = last_resort(ask.request, SHIPPED, trail, Reason.UPSTREAM_FAILED, FallbackType.TIMEOUT)
    assert (reply.level, reply.target, reply.degraded) == (Level.L4, Target.CACHE, True)
    assert reply.text == "An answer."
    assert reply.notice


async def test_a_looser_match_serves_only_as_a_last_resort() -> None:
    made = rig()
    await made.answered("how do I reset my password")
    _, look = await made.look("how can I reset the password")
    assert look.hit is None
    assert look.stale is not None


async def test_a_bad_verdict_evicts_the_row_that_served() -> None:
    made = rig()
    await made.answered("how do I reset my password", request_id="r1")
    await made.answered("how do I reset my passwords", request_id="r2")
    await made.desk.forget("u", "r2")
    assert (await made.look("how do I reset my password"))[1].hit is not None
    await made.desk.forget("t", "r2")
    assert (await made.look("how do I reset my password"))[1].hit is None
    assert (await made.look("how do I reset my passwords"))[1].hit is None
