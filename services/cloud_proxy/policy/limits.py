"""Limits of a tenant and of a key, decided together in one step. Pure.

Requests and tokens are held by a sliding window of 60 s in slots of one second:

    used(now) = sum of slot[s] for s from floor(now) - 60 to floor(now)

Those 61 slots cover every span of 60 s that ends now, so no such span ever holds more
than the limit; what was used may count up to a second longer. A token bucket or GCRA
would let through up to twice the limit in a minute (a full bucket and what flows in
meanwhile), and gives no place to which a refund returns exactly: here it is the slot
that it was taken from. Money counts per UTC day, concurrency by open reservations.

A reservation that is never settled ends with its lease: its place is free again, its
tokens leave with the window, its money stays spent, since a provider may have billed it.

`limits/*.lua` is the same in Redis' language; one test suite holds both to one contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

SLOT_MS = 1_000
WINDOW_SLOTS = 60
DAY_MS = 86_400_000
# Nobody knows when a running call ends; a second is a fair guess.
BUSY_RETRY_MS = 1_000


class Limit(StrEnum):
    """Which limit refused."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    CONCURRENCY = "concurrency"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one tenant or one key may use; None: as much as it likes."""

    requests_per_min: int | None = None
    tokens_per_min: int | None = None
    concurrent: int | None = None
    micro_usd_per_day: int | None = None


@dataclass(frozen=True, slots=True)
class Want:
    """What a call may use at most. `id` is used once; the lease outlives the call."""

    id: str
    tokens: int
    micro_usd: int
    lease_ms: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What a call did use."""

    tokens: int
    micro_usd: int


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left, over all scopes the least; None where nothing limits."""

    requests: int | None = None
    tokens: int | None = None
    micro_usd: int | None = None


@dataclass(frozen=True, slots=True)
class Granted:
    """The call may go on."""

    remaining: Remaining


@dataclass(frozen=True, slots=True)
class Refused:
    """The call may not. `retry_after_ms` None: it would never fit."""

    which: Limit
    retry_after_ms: int | None
    remaining: Remaining


Decision = Granted | Refused


@dataclass(frozen=True, slots=True)
class Held:
    """An open reservation; `slot` is the second at which it was made."""

    slot: int
    tokens: int
    micro_usd: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What one scope has used: by second, by second, by day; and what is open."""

    requests: Mapping[int, int] = field(default_factory=dict)
    tokens: Mapping[int, int] = field(default_factory=dict)
    micro_usd: Mapping[int, int] = field(default_factory=dict)
    held: Mapping[str, Held] = field(default_factory=dict)


State = Mapping[str, Usage]
"""Usage by scope, such as `tenant` and `key:ci`."""


def reserve(
    state: State, limits: Mapping[str, Limits], want: Want, now_ms: int
) -> tuple[State, Decision]:
    """Takes `want` from every scope in `limits`, or from none.

    Args:
        state: Usage before; the same object comes back where the call is refused.
        limits: The scopes that the call falls under.
        want: Upper bounds.
        now_ms: Unix time.
    """
    current = {scope: prune(state.get(scope, Usage()), now_ms) for scope in limits}
    refusals = [
        refusal
        for scope, usage in current.items()
        for refusal in _refusals(usage, limits[scope], want, now_ms)
    ]
    if refusals:
        which, retry = max(refusals, key=lambda r: float("inf") if r[1] is None else r[1])
        return state, Refused(which, retry, _remaining(current, limits, now_ms))
    taken = {scope: _take(usage, want, now_ms) for scope, usage in current.items()}
    return {**state, **taken}, Granted(_remaining(taken, limits, now_ms))


def settle(state: State, scopes: Iterable[str], id_: str, spent: Spent, now_ms: int) -> State:
    """Puts real figures in the place of a reservation; an unknown or ended one changes nothing.

    Real figures above the reservation count too, so that the next calls wait for them.
    """
    return _end(state, scopes, id_, spent, 1, now_ms)


def release(state: State, scopes: Iterable[str], id_: str, now_ms: int) -> State:
    """Gives back all that a reservation took, its request included."""
    return _end(state, scopes, id_, Spent(0, 0), 0, now_ms)


def prune(usage: Usage, now_ms: int) -> Usage:
    """`usage` without what no longer counts. Slots of the future stay: a clock may step back."""
    oldest = now_ms // SLOT_MS - WINDOW_SLOTS
    yesterday = now_ms // DAY_MS - 1
    return Usage(
        requests={slot: n for slot, n in usage.requests.items() if slot >= oldest},
        tokens={slot: n for slot, n in usage.tokens.items() if slot >= oldest},
        micro_usd={day: n for day, n in usage.micro_usd.items() if day >= yesterday},
        held={id_: held for id_, held in usage.held.items() if held.expires_at_ms > now_ms},
    )


def _end(
    state: State, scopes: Iterable[str], id_: str, spent: Spent, requests: int, now_ms: int
) -> State:
    changed = dict(state)
    for scope in scopes:
        usage = prune(state.get(scope, Usage()), now_ms)
        held = usage.held.get(id_)
        if held is None:
            continue
        day = held.slot * SLOT_MS // DAY_MS
        changed[scope] = replace(
            usage,
            requests=_add(usage.requests, held.slot, requests - 1),
            tokens=_add(usage.tokens, held.slot, spent.tokens - held.tokens),
            micro_usd=_add(usage.micro_usd, day, spent.micro_usd - held.micro_usd),
            held={key: value for key, value in usage.held.items() if key != id_},
        )
    return changed


def _take(usage: Usage, want: Want, now_ms: int) -> Usage:
    slot = now_ms // SLOT_MS
    held = Held(slot, want.tokens, want.micro_usd, now_ms + want.lease_ms)
    return Usage(
        requests=_add(usage.requests, slot, 1),
        tokens=_add(usage.tokens, slot, want.tokens),
        micro_usd=_add(usage.micro_usd, now_ms // DAY_MS, want.micro_usd),
        held={**usage.held, want.id: held},
    )


def _refusals(
    usage: Usage, limits: Limits, want: Want, now_ms: int
) -> list[tuple[Limit, int | None]]:
    found: list[tuple[Limit, int | None]] = []
    if _over(usage.requests, limits.requests_per_min, 1):
        found.append((Limit.REQUESTS, _wait(usage.requests, limits.requests_per_min, 1, now_ms)))
    if _over(usage.tokens, limits.tokens_per_min, want.tokens):
        wait = _wait(usage.tokens, limits.tokens_per_min, want.tokens, now_ms)
        found.append((Limit.TOKENS, wait))
    if limits.concurrent is not None and len(usage.held) >= limits.concurrent:
        found.append((Limit.CONCURRENCY, BUSY_RETRY_MS if limits.concurrent else None))
    if limits.micro_usd_per_day is not None:
        over = _spent_today(usage, now_ms) + want.micro_usd - limits.micro_usd_per_day
        if over > 0:
            found.append((Limit.BUDGET, _wait_money(usage, limits, want, over, now_ms)))
    return found


def _over(slots: Mapping[int, int], limit: int | None, want: int) -> bool:
    return limit is not None and sum(slots.values()) + want > limit


def _wait(slots: Mapping[int, int], limit: int | None, want: int, now_ms: int) -> int | None:
    """Until enough slots have left the window; None where the limit itself is too small."""
    missing = sum(slots.values()) + want - (limit or 0)
    for slot in sorted(slots):
        missing -= slots[slot]
        if missing <= 0:
            return (slot + WINDOW_SLOTS + 1) * SLOT_MS - now_ms
    return None


def _wait_money(usage: Usage, limits: Limits, want: Want, over: int, now_ms: int) -> int | None:
    if limits.micro_usd_per_day is not None and want.micro_usd > limits.micro_usd_per_day:
        return None
    # Open calls have reserved more than they will cost.
    if over <= sum(held.micro_usd for held in usage.held.values()):
        return BUSY_RETRY_MS
    return DAY_MS - now_ms % DAY_MS


def _remaining(state: State, limits: Mapping[str, Limits], now_ms: int) -> Remaining:
    return Remaining(
        _least((limits[s].requests_per_min, sum(u.requests.values())) for s, u in state.items()),
        _least((limits[s].tokens_per_min, sum(u.tokens.values())) for s, u in state.items()),
        _least((limits[s].micro_usd_per_day, _spent_today(u, now_ms)) for s, u in state.items()),
    )


def _least(pairs: Iterable[tuple[int | None, int]]) -> int | None:
    left = [max(0, limit - used) for limit, used in pairs if limit is not None]
    return min(left) if left else None


def _spent_today(usage: Usage, now_ms: int) -> int:
    return usage.micro_usd.get(now_ms // DAY_MS, 0)


def _add(slots: Mapping[int, int], slot: int, amount: int) -> Mapping[int, int]:
    """Never below zero: a refund for a slot that has left the window goes nowhere."""
    value = slots.get(slot, 0) + amount
    if value > 0 and (slot in slots or amount > 0):
        return {**slots, slot: value}
    return {key: n for key, n in slots.items() if key != slot}
