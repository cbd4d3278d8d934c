"""The ledger's parts put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.router.ledger.access import StoreAccess
from services.router.ledger.engine import parse_url
from services.router.ledger.journal import Journal
from services.router.ledger.retention import Retention
from services.router.ledger.spool import Spool
from services.router.ledger.sql_store import SqlLedgerStore
from services.router.ledger.writer import LedgerWriter

_SPOOL_DIR = Path("build/ledger-spool")


@dataclass(frozen=True, slots=True)
class LedgerParts:
    """What the composition root starts and stops."""

    access: StoreAccess
    writer: LedgerWriter
    retention: Retention

    async def start(self) -> None:
        """Needs no store to be up.

        Raises:
            ConfigInvalid: The spool's folder cannot be used.
        """
        await self.writer.start()
        self.retention.start()

    async def newest(self, limit: int) -> list[dict[str, Any]]:
        """The last rows, oldest first.

        Raises:
            StoreDown: The store does not answer.
        """
        return await self.access.newest(limit)

    async def stop(self) -> None:
        """Stores or spools what is queued, and ends."""
        await self.retention.stop()
        await self.writer.stop()


def open_ledger(
    url: str,
    spool_dir: Path | None,
    spool_max_bytes: int,
    retention_days: float,
    on_state: Callable[[bool], None],
) -> LedgerParts:
    """Builds the ledger for a URL; connects later.

    Raises:
        ConfigInvalid: The URL is of no kind that is known.
    """
    access = StoreAccess(SqlLedgerStore(url))
    folder = spool_dir or default_spool_dir(url)
    spool = Spool(folder, spool_max_bytes)
    writer = LedgerWriter(access, spool, on_state, journal=Journal(folder))
    return LedgerParts(access, writer, Retention(access, retention_days))


def default_spool_dir(url: str) -> Path:
    """Beside the SQLite file; for PostgreSQL a folder under build/."""
    parsed = parse_url(url)
    if parsed.get_backend_name() != "sqlite":
        return _SPOOL_DIR
    return Path(f"{parsed.database}.spool")
