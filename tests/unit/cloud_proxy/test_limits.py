"""Limits hold under any interleaving of reserving, settling, releasing and time."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cloud_proxy.policy.limits import (
    DAY_MS,
    WINDOW_SLOTS,
    Granted,
    Limit,
    Limits,
    Refused,
    Remaining,
    Spent,
    State,
    Want,
    release,
    reserve,
    settle,
)

NOW = 20_000 * DAY_MS + 12 * 3_600_000
TENANT = {"tenant": Limits(5, 1_000, 3, 500)}
BOTH = {**TENANT, "key:ci": Limits(requests_per_min=2, tokens_per_min=300)}
LEASE_MS = 20_000


def want(id_: str = "a", tokens: int = 100, micro_usd: int = 10) -> Want:
    return Want(id_, tokens, micro_usd, LEASE_MS)


def refused(state: State, limits: dict[str, Limits], what: Want, now: int = NOW) -> Refused:
    after, decision = reserve(state, limits, what, now)
    assert isinstance(decision, Refused)
    assert after is state
    return decision


@dataclass
class Taken:
    """What the test knows of a granted call."""

    at: int
    tokens: int
    micro_usd: int
    counted: bool = True
    open_until: int = 0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, 400), st.integers(0, 200)),
        st.tuples(st.just("settle"), st.integers(0, 50), st.integers(0, 100)),
        st.tuples(st.just("release"), st.integers(0, 50), st.just(0)),
        st.tuples(st.just("wait"), st.integers(0, 40_000), st.just(0)),
        st.tuples(st.just("wait"), st.integers(0, DAY_MS), st.just(0)),
    ),
    max_size=60,
)


def check(taken: list[Taken], limits: Limits, now: int) -> None:
    """The limits, by the plain definition: over every span of 60 s and over the day."""
    for end in taken:
        span = [t for t in taken if t.counted and end.at - 60_000 < t.at <= end.at]
        assert limits.requests_per_min is None or len(span) <= limits.requests_per_min
        assert limits.tokens_per_min is None or sum(t.tokens for t in span) <= limits.tokens_per_min
        day = [t for t in taken if t.at // DAY_MS == end.at // DAY_MS]
        money = sum(t.micro_usd for t in day)
        assert limits.micro_usd_per_day is None or money <= limits.micro_usd_per_day
    running = sum(t.open_until > now for t in taken)
    assert limits.concurrent is None or running <= limits.concurrent


@given(STEPS, st.sampled_from([TENANT, BOTH]))
def test_never_above_a_limit(steps: list[tuple[str, int, int]], limits: dict[str, Limits]) -> None:
    state: State = {}
    taken: list[Taken] = []
    now = NOW
    for step, first, second in steps:
        if step == "wait":
            now += first
        elif step == "reserve":
            before = state
            what = Want(str(len(taken)), first, second, LEASE_MS)
            state, decision = reserve(state, limits, what, now)
            if isinstance(decision, Granted):
                taken.append(Taken(now, first, second, open_until=now + LEASE_MS))
            else:
                assert state is before
        elif taken:
            one = taken[first % len(taken)]
            live = one.open_until > now
            share = 0 if step == "release" else second
            spent = Spent(one.tokens * share // 100, one.micro_usd * share // 100)
            id_ = str(first % len(taken))
            state = (
                release(state, limits, id_, now)
                if step == "release"
                else settle(state, limits, id_, spent, now)
            )
            if live:
                one.tokens, one.micro_usd, one.open_until = spent.tokens, spent.micro_usd, now
                one.counted = step != "release"
        for limit in limits.values():
            check(taken, limit, now)
        for usage in state.values():
            for amounts in (usage.requests, usage.tokens, usage.micro_usd):
                assert all(amount > 0 for amount in amounts.values())


@given(st.lists(st.integers(1, 60), max_size=8), st.integers(0, 60), st.integers(0, 60_000))
def test_release_restores_exactly_and_settle_leaves_the_real_figures(
    earlier: list[int], tokens: int, later_ms: int
) -> None:
    limits = {"tenant": Limits(20, 1_000, 20, 10_000)}
    state: State = {}
    for number, amount in enumerate(earlier):
        state, _ = reserve(state, limits, Want(f"e{number}", amount, amount, DAY_MS), NOW)
    lease = DAY_MS
    held, decision = reserve(state, limits, Want("x", tokens, 2 * tokens, lease), NOW)
    assert isinstance(decision, Granted)
    now = NOW + later_ms
    freed = release(held, limits, "x", now)
    probe = Want("probe", 1, 1, lease)
    assert reserve(freed, limits, probe, now)[1] == reserve(state, limits, probe, now)[1]
    assert release(freed, limits, "x", now) == freed
    real = Spent(tokens // 2, tokens)
    ended = settle(held, limits, "x", real, now)
    direct, _ = reserve(state, limits, Want("y", real.tokens, real.micro_usd, lease), NOW)
    direct = settle(direct, limits, "y", real, now)
    assert reserve(ended, limits, probe, now)[1] == reserve(direct, limits, probe, now)[1]
    assert settle(ended, limits, "x", real, now) == ended


def test_a_refusal_in_one_scope_takes_nothing_from_the_other() -> None:
    state, _ = reserve({}, BOTH, want("a"), NOW)
    state, _ = reserve(state, BOTH, want("b"), NOW)
    decision = refused(state, BOTH, want("c"))
    assert decision.which is Limit.REQUESTS
    assert decision.remaining == Remaining(requests=0, tokens=100, micro_usd=480)
    assert len(state["tenant"].held) == 2


@pytest.mark.parametrize(
    ("limits", "which", "retry_ms"),
    [
        (Limits(requests_per_min=1), Limit.REQUESTS, (WINDOW_SLOTS + 1) * 1_000),
        (Limits(tokens_per_min=150), Limit.TOKENS, (WINDOW_SLOTS + 1) * 1_000),
        (Limits(tokens_per_min=99), Limit.TOKENS, None),
        (Limits(concurrent=1), Limit.CONCURRENCY, 1_000),
        (Limits(concurrent=0), Limit.CONCURRENCY, None),
        # An open call may cost less than it reserved.
        (Limits(micro_usd_per_day=15), Limit.BUDGET, 1_000),
        (Limits(micro_usd_per_day=9), Limit.BUDGET, None),
    ],
)
def test_each_limit_refuses_and_says_until_when(
    limits: Limits, which: Limit, retry_ms: int | None
) -> None:
    state, _ = reserve({}, {"t": limits}, want("a"), NOW)
    decision = refused(state, {"t": limits}, want("b"))
    assert (decision.which, decision.retry_after_ms) == (which, retry_ms)
    if which in (Limit.REQUESTS, Limit.TOKENS) and retry_ms:
        refused(state, {"t": limits}, want("b"), NOW + retry_ms - 1)
        assert isinstance(reserve(state, {"t": limits}, want("b"), NOW + retry_ms)[1], Granted)


def test_a_spent_day_ends_at_midnight_utc() -> None:
    limits = {"t": Limits(micro_usd_per_day=15)}
    state, _ = reserve({}, limits, want("a"), NOW)
    state = settle(state, limits, "a", Spent(100, 10), NOW)
    decision = refused(state, limits, want("b"))
    assert decision.retry_after_ms == DAY_MS // 2
    assert isinstance(reserve(state, limits, want("b"), NOW + DAY_MS // 2)[1], Granted)


def test_a_reservation_that_is_never_settled_ends_with_its_lease() -> None:
    limits = {"t": Limits(concurrent=1, tokens_per_min=1_000, micro_usd_per_day=500)}
    state, _ = reserve({}, limits, want("dead"), NOW)
    refused(state, limits, want("b"), NOW + LEASE_MS - 1)
    state, decision = reserve(state, limits, want("b"), NOW + LEASE_MS)
    # Its money stays spent: the provider may have billed it.
    assert decision == Granted(Remaining(None, 800, 480))
    assert settle(state, limits, "dead", Spent(1, 1), NOW + LEASE_MS) == state


def test_more_than_reserved_counts_and_never_goes_below_zero() -> None:
    limits = {"t": Limits(tokens_per_min=150)}
    state, _ = reserve({}, limits, want("a"), NOW)
    state = settle(state, limits, "a", Spent(400, 0), NOW)
    assert refused(state, limits, want("b", tokens=1)).remaining.tokens == 0
    late = settle(state, limits, "a", Spent(0, 0), NOW + 300_000)
    assert late["t"].tokens == state["t"].tokens


def test_a_clock_that_steps_back_gives_nothing_away() -> None:
    limits = {"t": Limits(requests_per_min=1)}
    state, _ = reserve({}, limits, want("a"), NOW)
    refused(state, limits, want("b"), NOW - 10_000)
