"""The breaker: its window, its single probe, and the four points where pybreaker alone fails."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.breaker import Breaker, BreakerSettings, Permit

SETTINGS = BreakerSettings(window_s=30, min_calls=4, failure_share=0.5, cool_s=10)


def taken(breaker: Breaker, now: float) -> Permit:
    permit = breaker.admit(now)
    if permit is None:
        raise AssertionError("the breaker refused")
    return permit


def opened(at: float = 0.0) -> Breaker:
    breaker = Breaker("b", SETTINGS)
    for _ in range(4):
        taken(breaker, at).failed(at)
    assert breaker.state == "open"
    return breaker


async def guarded(breaker: Breaker, work: asyncio.Future[None], now: float) -> str:
    """How a service uses a permit around an await."""
    permit = breaker.admit(now)
    if permit is None:
        return "refused"
    try:
        await work
    except asyncio.CancelledError:
        permit.dropped()
        raise
    except OSError:
        permit.failed(now)
        return "failed"
    permit.succeeded(now)
    return "done"


async def test_a_failed_coroutine_counts() -> None:
    breaker = Breaker("b", SETTINGS)
    for _ in range(4):
        work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        work.set_exception(OSError())
        assert await guarded(breaker, work, 0.0) == "failed"
    assert breaker.state == "open"


async def test_a_cancelled_call_does_not_count() -> None:
    breaker = Breaker("b", SETTINGS)
    for _ in range(10):
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(guarded(breaker, never, 0.0))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert breaker.state == "closed"


async def test_half_open_lets_one_call_through() -> None:
    breaker = opened()
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = [asyncio.create_task(guarded(breaker, work, 10.0)) for _ in range(20)]
    await asyncio.sleep(0)
    assert breaker.state == "half-open"
    work.set_result(None)
    ends = await asyncio.gather(*waiting)
    assert ends.count("done") == 1
    assert ends.count("refused") == 19
    assert breaker.state == "closed"


def test_the_clock_is_ours_and_not_the_wall_clock() -> None:
    breaker = opened(at=1_000.0)
    assert breaker.admit(1_009.9) is None
    assert breaker.admit(1_010.0) is not None


def test_a_failed_probe_opens_anew() -> None:
    breaker = opened()
    taken(breaker, 10.0).failed(10.0)
    assert breaker.state == "open"
    assert not breaker.would_admit(19.9)
    assert breaker.would_admit(20.0)


def test_a_dropped_probe_leaves_its_place() -> None:
    breaker = opened()
    taken(breaker, 10.0).dropped()
    assert breaker.state == "open"
    taken(breaker, 10.0).succeeded(10.0)
    assert breaker.state == "closed"


def test_old_failures_slide_out_of_the_window() -> None:
    breaker = Breaker("b", SETTINGS)
    for _ in range(3):
        taken(breaker, 0.0).failed(0.0)
    taken(breaker, 31.0).failed(31.0)
    assert breaker.state == "closed"


def test_few_calls_are_no_rate_and_few_failures_no_outage() -> None:
    breaker = Breaker("b", SETTINGS)
    taken(breaker, 0.0).failed(0.0)
    for _ in range(5):
        taken(breaker, 0.0).succeeded(0.0)
    taken(breaker, 0.0).failed(0.0)
    assert breaker.state == "closed"


def test_the_cooling_counts_down() -> None:
    breaker = Breaker("b", SETTINGS)
    assert breaker.cooling_ms(0.0) == 0
    for _ in range(4):
        taken(breaker, 0.0).failed(0.0)
    cool_ms = int(SETTINGS.cool_s * 1000)
    assert [breaker.cooling_ms(now) for now in (0.0, 1.0, SETTINGS.cool_s + 1)] == [
        cool_ms,
        cool_ms - 1000,
        0,
    ]


def test_changes_are_told_once() -> None:
    told: list[tuple[str, str]] = []
    breaker = Breaker("b", SETTINGS, lambda old, new: told.append((old, new)))
    for _ in range(4):
        taken(breaker, 0.0).failed(0.0)
    taken(breaker, 10.0).succeeded(10.0)
    assert told == [("closed", "open"), ("open", "half-open"), ("half-open", "closed")]


steps = st.lists(
    st.tuples(st.sampled_from(["admit", "succeed", "fail", "drop"]), st.floats(0, 5)), max_size=80
)


@given(steps)
def test_at_most_one_probe_whatever_happens(moves: list[tuple[str, float]]) -> None:
    breaker, now, held = Breaker("b", SETTINGS), 0.0, list[Permit]()
    for move, wait in moves:
        now += wait
        if move == "admit":
            would = breaker.would_admit(now)
            permit = breaker.admit(now)
            assert would == (permit is not None)
            held += [permit] if permit else []
        elif held:
            permit = held.pop(0)
            if move == "succeed":
                permit.succeeded(now)
            elif move == "fail":
                permit.failed(now)
            else:
                permit.dropped()
        assert sum(permit.probe for permit in held) <= 1
