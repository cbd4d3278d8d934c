"""The bounded buffer of one stream."""

from __future__ import annotations

import asyncio

import pytest

from services.common.errors import EngineFailed, SlowReader
from services.edge_worker.events import DeltaEvent, Event, FailedEvent, TokenInfo
from services.edge_worker.outlet import Outlet


def outlet(max_events: int = 4, max_bytes: int = 100) -> tuple[Outlet, list[str]]:
    calls: list[str] = []
    return Outlet(max_events, max_bytes, lambda: calls.append("abort")), calls


async def test_events_come_in_order() -> None:
    one, calls = outlet()
    for text in "abc":
        one.push(DeltaEvent(text, ()))
    texts = [await one.get() for _ in range(3)]
    assert texts == [DeltaEvent(text, ()) for text in "abc"]
    assert calls == []


async def test_waits_for_the_next_event() -> None:
    one, _ = outlet()
    waiting = asyncio.create_task(one.get())
    await asyncio.sleep(0)
    one.push(DeltaEvent("late", ()))
    assert await waiting == DeltaEvent("late", ())


TOKEN = TokenInfo(1, -0.5, tuple((i, -1.0) for i in range(5)))


@pytest.mark.parametrize(
    "events",
    [
        [DeltaEvent("a", ())] * 5,
        [DeltaEvent("a" * 60, ())] * 2,
        [DeltaEvent("价" * 20, ())] * 2,
        [DeltaEvent("", (TOKEN,))] * 2,
    ],
)
async def test_slow_reader_is_cut_off_once(events: list[Event]) -> None:
    one, calls = outlet()
    for event in [*events, *events]:
        one.push(event)
    assert calls == ["abort"]
    assert one.overflowed
    with pytest.raises(SlowReader):
        await one.get()


async def test_reader_that_keeps_up_is_never_cut_off() -> None:
    one, calls = outlet()
    for _ in range(50):
        one.push(DeltaEvent("a" * 40, ()))
        await one.get()
    assert calls == []


async def test_failure_is_raised_after_what_came_before() -> None:
    one, _ = outlet()
    one.push(DeltaEvent("a", ()))
    one.push(FailedEvent(EngineFailed("broken")))
    assert await one.get() == DeltaEvent("a", ())
    with pytest.raises(EngineFailed):
        await one.get()
