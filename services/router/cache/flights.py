"""Single flight: of equal requests under way one asks the model, the others wait for its answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum, auto

from services.router.cache.entry import CachedAnswer


class Ended(Enum):
    """How a flight ended without an answer that can be shared."""

    LEFT = auto()
    """The leader's caller left: another takes its place."""
    FELL_SHORT = auto()
    """The leader got nothing to share: each tries for itself."""
    TOO_LATE = auto()
    """The waiter's patience is over."""


@dataclass(slots=True)
class Flights:
    """The flights of this process, by fingerprint. Use from one event loop."""

    _flying: dict[str, asyncio.Future[CachedAnswer | Ended]] = field(default_factory=dict)

    def lead(self, fingerprint: str) -> bool:
        """Takes the lead where nobody has it; the leader must call `land`."""
        if fingerprint in self._flying:
            return False
        self._flying[fingerprint] = asyncio.get_running_loop().create_future()
        return True

    async def wait(self, fingerprint: str, patience_s: float) -> CachedAnswer | Ended:
        """Waits for the leader; its end never cancels the waiter, nor the other way round."""
        flight = self._flying.get(fingerprint)
        if flight is None:
            return Ended.LEFT
        try:
            async with asyncio.timeout(patience_s):
                return await asyncio.shield(flight)
        except TimeoutError:
            return Ended.TOO_LATE

    def land(self, fingerprint: str, result: CachedAnswer | Ended) -> None:
        """Ends the flight and wakes all who wait."""
        flight = self._flying.pop(fingerprint, None)
        if flight is not None and not flight.done():
            flight.set_result(result)
