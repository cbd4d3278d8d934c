"""How long one wait for a provider may last."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from services.common.errors import DeadlineExceeded, UpstreamStalled

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """Bounds each wait by the stall limit and all of them by the budget.

    Attributes:
        stall_ms: Longest silence that is borne.
        expires_at: Monotonic seconds at which the budget ends.
    """

    stall_ms: int
    expires_at: float

    async def wait(self, what: Awaitable[T]) -> T:
        """Awaits `what`.

        Raises:
            DeadlineExceeded: The budget ended.
            UpstreamStalled: Silence lasted longer than `stall_ms`.
        """
        remaining_s = max(0.0, self.expires_at - time.monotonic())
        stall_s = self.stall_ms / 1000.0
        try:
            async with asyncio.timeout(min(stall_s, remaining_s)):
                return await what
        except TimeoutError as exc:
            if remaining_s <= stall_s:
                raise DeadlineExceeded("the provider did not answer within the deadline") from exc
            raise UpstreamStalled(f"the provider was silent for {self.stall_ms} ms") from exc
