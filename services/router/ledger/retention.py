"""Deletes what is too old, in the background, in small batches."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

import structlog

from services.router.ledger.access import StoreAccess
from services.router.ledger.store import StoreDown

_log = structlog.get_logger()
_DAY_S = 86_400.0
_ROUND_S = 3_600.0
_BATCH = 500
# Between two batches others get their turn at the store.
_REST_S = 0.1


class Retention:
    """Runs at start and every hour.

    Args:
        days: Age at which rows and verdicts go.
        clock: Seconds since the epoch.
    """

    def __init__(
        self, access: StoreAccess, days: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._access = access
        self._days = days
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins, on the running loop."""
        self._task = asyncio.create_task(self._rounds(), name="ledger-retention")

    async def stop(self) -> None:
        """Ends it."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def sweep(self) -> int:
        """Deletes all that is too old now; returns how many rows and verdicts.

        Raises:
            StoreDown: The store failed; the next round goes on.
        """
        total, before = 0, self._clock() - self._days * _DAY_S
        while deleted := await self._access.delete_before(before, _BATCH):
            total += deleted
            await asyncio.sleep(_REST_S)
        return total

    async def _rounds(self) -> None:
        while True:
            try:
                deleted = await self.sweep()
                if deleted:
                    _log.info("ledger_retention", deleted=deleted)
            except StoreDown as error:
                _log.warning("ledger_retention_failed", error=error.message)
            except Exception:  # the next round may go better
                _log.exception("ledger_retention_failed")
            await asyncio.sleep(_ROUND_S)
