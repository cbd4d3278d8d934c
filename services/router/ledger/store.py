"""What a store of the ledger does; blocking, called from one thread at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from services.common.errors import Code, TandemError
from services.router.ledger.entry import Row, Verdict


class StoreDown(TandemError):
    """The ledger's store does not answer; what it did not take must be kept elsewhere."""

    code = Code.UNAVAILABLE
    reason = "LEDGER_UNAVAILABLE"
    retryable = True


class RowsRefused(Exception):
    """The store answers and refuses these rows, now and later."""


@dataclass(frozen=True, slots=True)
class LedgerQuery:
    """Which rows; empty strings match all.

    Attributes:
        since: Seconds since the epoch, inclusive.
        newest: The last `limit` rows that match, else the first ones. Oldest first in both.
        after: (at, row_id) of the last row seen, to go on from there with `newest=False`.
    """

    since: float = 0.0
    tenant: str = ""
    level: str = ""
    reason: str = ""
    limit: int = 50
    newest: bool = True
    after: tuple[float, str] | None = None


class LedgerStore(Protocol):
    """Rows by row id, verdicts by tenant and request id. All methods raise StoreDown."""

    def prepare(self) -> None:
        """Brings the tables to the newest shape; may be called again."""

    def append_many(self, rows: Sequence[Row]) -> None:
        """Stores rows, all or none; a row that is there already stays as it is.

        Raises:
            RowsRefused: At least one of them cannot be stored.
        """

    def query(self, query: LedgerQuery) -> list[dict[str, Any]]:
        """Rows with their verdict (None where there is none)."""

    def has(self, tenant: str, request_id: str) -> bool:
        """Whether the tenant has a row of this request."""

    def set_verdict(self, verdicts: Sequence[Verdict]) -> None:
        """Stores verdicts; of two on one request the later stands.

        Raises:
            RowsRefused: At least one of them cannot be stored.
        """

    def delete_before(self, at: float, limit: int) -> int:
        """Deletes at most `limit` rows and verdicts each older than `at`; how many there were."""

    def close(self) -> None:
        """Gives connections back."""
