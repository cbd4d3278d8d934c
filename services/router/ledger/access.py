"""The store behind one thread, with a bound on how long anything waits for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from services.router.ledger.entry import Entry, plain
from services.router.ledger.lane import Lane
from services.router.ledger.store import LedgerQuery, LedgerStore, RowsRefused, StoreDown

T = TypeVar("T")
_TIMEOUT_S = 5.0
_CLOSE_S = 2.0


class StoreAccess:
    """Awaitable ways to a `LedgerStore`; all raise StoreDown, also where it hangs."""

    def __init__(self, store: LedgerStore, timeout_s: float = _TIMEOUT_S) -> None:
        self._store = store
        self._timeout_s = timeout_s
        self._lane = Lane("ledger-store")
        self._prepared = False

    async def put(self, entries: Sequence[Entry]) -> list[Entry]:
        """Stores entries; those that the store will never take come back."""
        return await self._run(lambda: self._put([plain(entry) for entry in entries]))

    async def has(self, tenant: str, request_id: str) -> bool:
        """See `LedgerStore`."""
        return await self._run(partial(self._store.has, tenant, request_id))

    async def newest(self, limit: int) -> list[dict[str, Any]]:
        """The last rows, oldest first."""
        return await self._run(partial(self._store.query, LedgerQuery(limit=limit)))

    async def delete_before(self, at: float, limit: int) -> int:
        """See `LedgerStore`."""
        return await self._run(partial(self._store.delete_before, at, limit))

    async def close(self) -> None:
        """Closes the store and ends the thread; where the store hangs, without waiting for it."""
        try:
            await self._lane.run(self._store.close, _CLOSE_S)
        except TimeoutError:
            self._lane.close(self._store.close)
        else:
            self._lane.close()

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await self._lane.run(partial(self._prepared_then, work), self._timeout_s)
        except TimeoutError as exc:
            raise StoreDown("the ledger's store does not answer in time") from exc

    def _prepared_then(self, work: Callable[[], T]) -> T:
        if not self._prepared:
            self._store.prepare()
            self._prepared = True
        return work()

    def _put(self, entries: Sequence[Entry]) -> list[Entry]:
        """By halves where some are refused, so that one bad row holds no other up."""
        try:
            self._store.append_many([entry.row for entry in entries if entry.row is not None])
            self._store.set_verdict([e.verdict for e in entries if e.verdict is not None])
        except RowsRefused:
            if len(entries) == 1:
                return list(entries)
            middle = len(entries) // 2
            return self._put(entries[:middle]) + self._put(entries[middle:])
        return []
