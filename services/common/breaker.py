"""A circuit breaker for asyncio: pybreaker's states, a sliding window and one probe of ours.

pybreaker keeps the state and tells its listeners. Its own counting is not used, since
on asyncio it counts no failure of a coroutine, counts a cancelled call as one, lets
every waiting call through when half open, and times the opening by the wall clock. Here
calls report how they ended, a call that nobody is to blame for is dropped, the window
slides, one probe at a time goes through, and the clock is an argument (monotonic seconds).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import pybreaker
from pydantic import Field

from services.common.settings import Settings

STATE_CLOSED = pybreaker.STATE_CLOSED
# For gauges: the higher, the less comes through.
STATE_CODES = {STATE_CLOSED: 0, pybreaker.STATE_HALF_OPEN: 1, pybreaker.STATE_OPEN: 2}

OnChange = Callable[[str, str], None]


class BreakerSettings(Settings):
    """When a breaker opens, and for how long."""

    window_s: float = Field(default=30.0, gt=0)
    """Calls older than this no longer count."""
    min_calls: int = Field(default=10, ge=1)
    """With fewer calls in the window it stays closed: one of two is no rate."""
    failure_share: float = Field(default=0.5, gt=0, le=1)
    """It opens at this share of failed calls."""
    cool_s: float = Field(default=10.0, ge=0)
    """How long it stays open before one probe may try."""


@dataclass(eq=False, slots=True)
class Permit:
    """Leave for one call, which must say how it ended; `dropped` after that changes nothing."""

    breaker: Breaker
    probe: bool

    def succeeded(self, now: float) -> None:
        """The target did its work."""
        self.breaker.report(self, now, failed=False)

    def failed(self, now: float) -> None:
        """The target failed: down, overloaded, too late."""
        self.breaker.report(self, now, failed=True)

    def dropped(self) -> None:
        """Nobody is to blame: the caller left, or its request was bad."""
        self.breaker.drop(self)


class Breaker:
    """Closed, open or half open, for one target.

    Args:
        name: For listeners.
        settings: When it opens.
        on_change: Told the old and the new state.
    """

    def __init__(
        self, name: str, settings: BreakerSettings, on_change: OnChange = lambda _old, _new: None
    ) -> None:
        self._settings = settings
        self._calls: deque[tuple[float, bool]] = deque()
        self._open_until = 0.0
        self._probe: Permit | None = None
        self._machine = pybreaker.CircuitBreaker(name=name, listeners=[_Listener(on_change)])

    @property
    def state(self) -> str:
        """closed, open or half-open."""
        return str(self._machine.current_state)

    def would_admit(self, now: float) -> bool:
        """True where `admit` would give a permit; changes nothing."""
        if self.state == pybreaker.STATE_CLOSED:
            return True
        return self._probe is None and now >= self._open_until

    def cooling_ms(self, now: float) -> int:
        """What is left of the cooling; 0 where it is over or the breaker is closed."""
        return max(0, math.ceil((self._open_until - now) * 1000.0))

    def admit(self, now: float) -> Permit | None:
        """A permit for one call, or None while open; after the cooling, one probe at a time."""
        if not self.would_admit(now):
            return None
        if self.state == pybreaker.STATE_CLOSED:
            return Permit(self, probe=False)
        self._machine.half_open()
        self._probe = Permit(self, probe=True)
        return self._probe

    def insist(self) -> Permit:
        """A permit although it is open, for a call that has no other way.

        While the breaker is open the call's end changes nothing: the probe decides.
        """
        return Permit(self, probe=False)

    def report(self, permit: Permit, now: float, *, failed: bool) -> None:
        """Takes in how a call ended."""
        if permit.probe:
            self._end_probe(permit, now, failed=failed)
        elif self.state == pybreaker.STATE_CLOSED:
            self._calls.append((now, failed))
            if failed and self._over(now):
                self._open(now)

    def drop(self, permit: Permit) -> None:
        """Forgets a call; a dropped probe leaves its place to the next."""
        if permit is self._probe:
            self._probe = None
            self._machine.open()

    def _end_probe(self, permit: Permit, now: float, *, failed: bool) -> None:
        if permit is not self._probe:
            return
        self._probe = None
        if failed:
            self._open(now)
        else:
            self._calls.clear()
            self._machine.close()

    def _open(self, now: float) -> None:
        self._open_until = now + self._settings.cool_s
        self._machine.open()

    def _over(self, now: float) -> bool:
        while self._calls and self._calls[0][0] < now - self._settings.window_s:
            self._calls.popleft()
        failures = sum(failed for _, failed in self._calls)
        enough = len(self._calls) >= self._settings.min_calls
        return enough and failures >= self._settings.failure_share * len(self._calls)


class _Listener(pybreaker.CircuitBreakerListener):
    def __init__(self, on_change: OnChange) -> None:
        self._on_change = on_change

    def state_change(
        self,
        cb: pybreaker.CircuitBreaker,
        old_state: pybreaker.CircuitBreakerState | None,
        new_state: pybreaker.CircuitBreakerState,
    ) -> None:
        if old_state is None or old_state.name != new_state.name:
            self._on_change(old_state.name if old_state else "", new_state.name)
