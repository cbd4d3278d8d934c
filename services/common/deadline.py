"""The time budget of a call: read from metadata, kept by a monotonic clock, handed on.

Only durations cross hosts. Remaining = min(`deadline_ms` − `elapsed_ms`, the
native gRPC deadline). Pure: the clock is an argument, in seconds, as
`time.monotonic()` gives it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.common.errors import DeadlineExceeded, InvalidField

DEADLINE_KEY = "deadline_ms"
ELAPSED_KEY = "elapsed_ms"
# Some HTTP proxies drop names with underscores; we read these and send the others.
_ALIASES = {"x-deadline-ms": DEADLINE_KEY, "x-elapsed-ms": ELAPSED_KEY}
# The largest value that a 32-bit client can hold; beyond it a value is a mistake.
MAX_METADATA_MS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """What a tenant grants: `default_ms` when nothing is asked, `max_ms` at most."""

    default_ms: int = 8_000
    max_ms: int = 120_000


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of one call at one hop.

    Attributes:
        deadline_ms: Whole budget granted at the entrance.
        elapsed_ms: Used up before this hop received the call.
        received_at: Monotonic time of receipt, seconds.
        expires_at: Monotonic time at which nothing remains, seconds.
    """

    deadline_ms: int
    elapsed_ms: int
    received_at: float
    expires_at: float

    def remaining_ms(self, now: float) -> float:
        """Milliseconds left at `now`, never below 0."""
        return max(0.0, (self.expires_at - now) * 1000.0)

    def spent_ms(self, now: float) -> float:
        """Milliseconds used at this hop since receipt."""
        return (now - self.received_at) * 1000.0

    def total_elapsed_ms(self, now: float) -> int:
        """Milliseconds used since the entrance, as `elapsed_ms` is sent on."""
        return self.elapsed_ms + max(0, round(self.spent_ms(now)))

    def granted_ms(self) -> float:
        """Milliseconds that this hop had at receipt."""
        return (self.expires_at - self.received_at) * 1000.0

    def child_metadata(self, now: float, cap_ms: float) -> tuple[tuple[str, str], ...]:
        """`deadline_ms` and `elapsed_ms` for a call that may take `cap_ms` from now.

        The child's deadline is lowered so that deadline − elapsed never exceeds
        the cap: a hop that only reads metadata stops in time too.
        """
        elapsed = self.total_elapsed_ms(now)
        deadline = min(self.deadline_ms, elapsed + max(1, int(cap_ms)))
        return ((DEADLINE_KEY, str(max(deadline, elapsed + 1))), (ELAPSED_KEY, str(elapsed)))


def parse_budget(
    metadata: Iterable[tuple[str, str | bytes]],
    *,
    native_remaining_s: float | None,
    limits: BudgetLimits,
    now: float,
) -> Budget:
    """Reads the budget of a call on receipt.

    Args:
        metadata: The call's invocation metadata.
        native_remaining_s: What gRPC says remains, or None without a deadline.
        limits: The tenant's default and maximum.
        now: Monotonic seconds.

    Raises:
        InvalidField: Zero, negative, non-integer, overflow, duplicate, or
            `elapsed_ms` without `deadline_ms`.
        DeadlineExceeded: `elapsed_ms` ≥ `deadline_ms`, or nothing remains.
    """
    found: dict[str, int] = {}
    for raw_key, value in metadata:
        key = _ALIASES.get(raw_key, raw_key)
        if key not in (DEADLINE_KEY, ELAPSED_KEY):
            continue
        if key in found:
            raise InvalidField(key, "must be given once")
        found[key] = _integer(key, value)
    deadline = found.get(DEADLINE_KEY)
    elapsed = found.get(ELAPSED_KEY, 0)
    if deadline is None and ELAPSED_KEY in found:
        raise InvalidField(ELAPSED_KEY, "needs deadline_ms beside it")
    if deadline == 0:
        raise InvalidField(DEADLINE_KEY, f"must be from 1 to {MAX_METADATA_MS}")
    granted = min(limits.default_ms if deadline is None else deadline, limits.max_ms)
    remaining_ms = float(granted - elapsed)
    if native_remaining_s is not None:
        remaining_ms = min(remaining_ms, native_remaining_s * 1000.0)
    expires_at = now + remaining_ms / 1000.0
    # Compared on the clock's own scale: beside it a tiny rest vanishes.
    if expires_at <= now:
        raise DeadlineExceeded("the call arrived with no time left of its deadline")
    return Budget(granted, elapsed, now, expires_at)


def _integer(key: str, value: str | bytes) -> int:
    """Strict decimal digits: no sign, space, underscore or other script's digits."""
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    low = 1 if key == DEADLINE_KEY else 0
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > MAX_METADATA_MS:
        raise InvalidField(key, f"must be a whole number from {low} to {MAX_METADATA_MS}")
    return int(text)
