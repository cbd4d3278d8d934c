"""Takes rows at once and writes them off the request's way.

Queue in memory, noted in a journal → store, in batches. While the store is down: queue → spool
on disk, and from there in order to the store when it is back. What waits in the spool goes first,
so until it is empty new entries join it. Where the spool cannot take them either, rows wait in
memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

import structlog
from opentelemetry import metrics

from services.common.errors import TandemError
from services.common.telemetry import names
from services.router.ledger.access import StoreAccess
from services.router.ledger.entry import Entry, Row, Verdict, row_entry
from services.router.ledger.journal import Journal
from services.router.ledger.lane import Lane
from services.router.ledger.recent import Recent
from services.router.ledger.spool import Spool, SpoolFull
from services.router.ledger.store import StoreDown
from services.router.ledger.waiting import EntryQueue, Waiting

_log = structlog.get_logger()
_entries = metrics.get_meter("tandem.router").create_counter(
    names.LEDGER_ENTRIES, description="Rows and verdicts by what became of them"
)
_MAX_QUEUED = 10_000
_MAX_BATCH = 500
_GATHER_S = 0.05
_FIRST_RETRY_S = 0.25
_LAST_RETRY_S = 5.0
_DISK_S = 10.0
_LAST_REPLAY_S = 5.0
# Between two tries while neither store nor disk takes anything.
_PAUSE_S = 0.5


class LedgerWriter:
    """See `Ledger`. Used on the event loop alone.

    Args:
        on_state: Told on the loop whenever the store goes down (False) or comes back.
        journal: Notes what waits in memory; None: a killed process loses it.
        gather_s: How long entries are gathered before they are written together.
    """

    def __init__(
        self,
        access: StoreAccess,
        spool: Spool,
        on_state: Callable[[bool], None] = lambda well: None,
        *,
        journal: Journal | None = None,
        gather_s: float = _GATHER_S,
        max_queued: int = _MAX_QUEUED,
    ) -> None:
        self._access = access
        self._spool = spool
        self._on_state = on_state
        self._journal = journal
        self._gather_s = gather_s
        self._queue = EntryQueue(max_queued)
        self._recent = Recent()
        self._disk = Lane("ledger-spool")
        self._task: asyncio.Task[None] | None = None
        self._stop_at: float | None = None
        self._retry_at = 0.0
        self._retry_s = 0.0  # above 0 while the store is down
        self._pause_until = 0.0  # while neither store nor disk takes anything

    async def start(self) -> None:
        """Takes over what an earlier process left in the spool, and begins to write.

        Raises:
            ConfigInvalid: The spool's folder cannot be used.
        """
        for row in await self._disk.run(self._take_over, _DISK_S):
            self._recent.add(row)
        self._task = asyncio.create_task(self._run(), name="ledger")

    async def stop(self) -> None:
        """Stores or spools what is queued, replays for a while where the store is up, and ends."""
        self._stop_at = time.monotonic()
        self._queue.wake()
        if self._task is not None:
            await self._task
        self._disk.close()
        await self._access.close()
        if self._journal is not None:
            self._journal.close()
        self._spool.close()

    def append(self, row: Row) -> None:
        """See `Ledger`."""
        self._recent.add(row)
        self._put(Waiting(row_entry(row)))

    async def save(self, verdict: Verdict) -> None:
        """Returns when the verdict is in the store or on disk.

        Raises:
            StoreDown: It is in neither.
        """
        kept: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._put(Waiting(Entry(verdict=verdict), kept))
        if not await kept:
            raise StoreDown("the verdict could not be stored; try again later")

    async def has(self, tenant: str, request_id: str) -> bool:
        """Whether the tenant has such a request, stored or not yet.

        Raises:
            StoreDown: Nobody can tell now.
        """
        return self._recent.has(tenant, request_id) or await self._access.has(tenant, request_id)

    def _put(self, item: Waiting) -> None:
        if not self._queue.put(item):
            self._lost([item], "ledger_queue_full")
        elif self._journal is not None:
            self._journal.note(item.entry)

    async def _run(self) -> None:
        while not await self._finished():
            batch = self._queue.take(_MAX_BATCH)
            try:
                if batch:
                    await self._keep(batch)
                if not self._spool.empty and time.monotonic() >= self._retry_at:
                    await self._replay()
            except Exception:  # the writer outlives what nobody thought of
                _log.exception("ledger_writer_failed")
                self._down("unexpected")
                self._lost([item for item in batch if item.kept is None or not item.kept.done()])

    async def _finished(self) -> bool:
        """Waits for work; True once there is none left to do before the end."""
        if self._stop_at is not None:
            now = time.monotonic()
            no_more = now < self._retry_at or now > self._stop_at + _LAST_REPLAY_S
            return not self._queue and (self._spool.empty or no_more)
        if time.monotonic() < self._pause_until:
            await asyncio.sleep(self._pause_until - time.monotonic())
            return False
        due = None if self._spool.empty else max(0.0, self._retry_at - time.monotonic())
        await self._queue.wait(due)
        if self._stop_at is None and 0 < len(self._queue) < _MAX_BATCH:
            await asyncio.sleep(self._gather_s)
        return False

    async def _keep(self, batch: Sequence[Waiting]) -> None:
        if self._spool.empty and time.monotonic() >= self._retry_at:
            try:
                await self._store([item.entry for item in batch], "stored")
            except StoreDown:
                pass
            else:
                self._settle(batch)
                return
        await self._to_disk(batch)

    async def _store(self, entries: Sequence[Entry], outcome: str) -> None:
        try:
            refused = await self._access.put(entries)
        except TandemError as error:
            self._down(error.message)
            raise StoreDown(error.message) from error
        self._up()
        _entries.add(len(entries) - len(refused), {names.OUTCOME: outcome})
        for entry in refused:
            _entries.add(1, {names.OUTCOME: "refused"})
            _log.error("ledger_entry_refused", row=dict(entry.row or {}))

    async def _to_disk(self, batch: Sequence[Waiting]) -> None:
        entries = [item.entry for item in batch]
        try:
            await self._disk.run(partial(self._spool.append, entries), _DISK_S)
        except SpoolFull:
            self._wait_in_memory(batch, "ledger_spool_full")
        except (OSError, TimeoutError) as exc:
            self._wait_in_memory(batch, "ledger_spool_failed", error=type(exc).__name__)
        else:
            _entries.add(len(entries), {names.OUTCOME: "spooled"})
            self._settle(batch)

    def _wait_in_memory(self, batch: Sequence[Waiting], event: str, **fields: str) -> None:
        """Nothing takes them now: rows go back into the queue while it has room and we run."""
        over: Sequence[Waiting] = batch
        if self._stop_at is None:
            rows = [item for item in batch if item.kept is None]
            told = [item for item in batch if item.kept is not None]
            over = [*told, *self._queue.put_back(rows)]
            self._pause_until = time.monotonic() + _PAUSE_S
            _log.error(event, entries=len(batch), waiting=len(self._queue), **fields)
        if over:
            self._lost(over, event, **fields)

    async def _replay(self) -> None:
        """Moves the oldest segment to the store; where that fails the segment stays whole."""
        try:
            path, entries = await self._disk.run(self._spool.oldest, _DISK_S)
            for start in range(0, len(entries), _MAX_BATCH):
                await self._store(entries[start : start + _MAX_BATCH], "replayed")
            await self._disk.run(partial(self._spool.delete, path), _DISK_S)
        except StoreDown:
            return
        except (OSError, TimeoutError) as exc:
            _log.error("ledger_replay_failed", error=type(exc).__name__)
            self._retry_at = time.monotonic() + _LAST_RETRY_S
            return
        _log.info("ledger_replayed", entries=len(entries), left_bytes=self._spool.size_bytes)

    def _down(self, why: str) -> None:
        if self._retry_s == 0.0:
            _log.error("ledger_store_down", error=why)
            self._on_state(False)
        self._retry_s = min(max(2 * self._retry_s, _FIRST_RETRY_S), _LAST_RETRY_S)
        self._retry_at = time.monotonic() + self._retry_s

    def _up(self) -> None:
        if self._retry_s > 0.0:
            _log.info("ledger_store_back")
            self._on_state(True)
        self._retry_s = self._retry_at = 0.0

    def _settle(self, batch: Sequence[Waiting]) -> None:
        for item in batch:
            item.settle(True)
            self._noted_elsewhere(item)

    def _lost(self, batch: Sequence[Waiting], event: str = "ledger_lost", **fields: str) -> None:
        """The log is the last place a row can be saved from; verdicts may hold text."""
        _entries.add(len(batch), {names.OUTCOME: "lost"})
        _log.error(event, entries=len(batch), **fields)
        for item in batch:
            if item.entry.row is not None:
                _log.error("ledger_row_lost", row=dict(item.entry.row))
            item.settle(False)
            self._noted_elsewhere(item)

    def _noted_elsewhere(self, item: Waiting) -> None:
        if self._journal is not None:
            self._journal.kept(item.entry)

    def _take_over(self) -> list[Row]:
        self._spool.open()
        found = [
            entry.row for path in self._spool.segments() for entry in self._spool.entries(path)
        ]
        return [row for row in found if row is not None]
