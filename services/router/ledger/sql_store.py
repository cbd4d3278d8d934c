"""The ledger in SQLite or PostgreSQL, by SQLAlchemy Core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, Table, and_, delete, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    ProgrammingError,
    SQLAlchemyError,
    StatementError,
)

from services.router.ledger.engine import open_engine, parse_url
from services.router.ledger.entry import Row, Verdict
from services.router.ledger.migrate import upgrade
from services.router.ledger.schema import COLUMNS, FEEDBACK, REQUESTS
from services.router.ledger.store import LedgerQuery, RowsRefused, StoreDown

# PostgreSQL: no such table or column or schema (not migrated yet), no permission (yet).
_NOT_READY = frozenset({"42P01", "42703", "3F000", "42501"})


class SqlLedgerStore:
    """See `LedgerStore`.

    Raises:
        ConfigInvalid: The URL is of no kind that is known.
    """

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self._url = parse_url(url)
        self._engine = open_engine(self._url, read_only=read_only)
        self._insert: Callable[[Table], Any] = (
            sqlite.insert if self._engine.dialect.name == "sqlite" else postgresql.insert
        )

    @property
    def name(self) -> str:
        """The URL without its password, for logs and messages."""
        return self._url.render_as_string(hide_password=True)

    def prepare(self) -> None:
        """See `LedgerStore`."""
        if self._url.get_backend_name() == "sqlite":
            try:
                Path(self._url.database or "").parent.mkdir(parents=True, exist_ok=True)
            except OSError as exc:
                raise StoreDown(f"the ledger's folder cannot be made: {exc.strerror}") from exc
        with self._begin() as connection:
            upgrade(connection)

    def append_many(self, rows: Sequence[Row]) -> None:
        """See `LedgerStore`."""
        if not rows:
            return
        unknown = set().union(*rows) - COLUMNS
        if unknown:
            raise RowsRefused(f"unknown columns: {sorted(unknown)}")
        filled = [dict.fromkeys(COLUMNS) | dict(row) for row in rows]
        statement = self._insert(REQUESTS).on_conflict_do_nothing(index_elements=["row_id"])
        with self._begin() as connection:
            connection.execute(statement, filled)

    def query(self, query: LedgerQuery) -> list[dict[str, Any]]:
        """See `LedgerStore`."""
        with self._begin() as connection:
            found = connection.execute(_selection(query)).mappings().all()
        rows = [dict(row) for row in found]
        return rows[::-1] if query.newest else rows

    def has(self, tenant: str, request_id: str) -> bool:
        """See `LedgerStore`."""
        mine = (REQUESTS.c.tenant == tenant) & (REQUESTS.c.request_id == request_id)
        with self._begin() as connection:
            found = connection.execute(select(REQUESTS.c.row_id).where(mine).limit(1)).first()
        return found is not None

    def set_verdict(self, verdicts: Sequence[Verdict]) -> None:
        """See `LedgerStore`."""
        if not verdicts:
            return
        insert = self._insert(FEEDBACK)
        changed = {name: insert.excluded[name] for name in ("at", "verdict", "corrected_text")}
        statement = insert.on_conflict_do_update(
            index_elements=["tenant", "request_id"],
            set_=changed,
            where=insert.excluded.at >= FEEDBACK.c.at,
        )
        with self._begin() as connection:
            connection.execute(statement, [asdict(verdict) for verdict in verdicts])

    def delete_before(self, at: float, limit: int) -> int:
        """See `LedgerStore`."""
        old = select(REQUESTS.c.row_id).where(REQUESTS.c.at < at).limit(limit)
        key = tuple_(FEEDBACK.c.tenant, FEEDBACK.c.request_id)
        stale = select(FEEDBACK.c.tenant, FEEDBACK.c.request_id)
        stale = stale.where(FEEDBACK.c.at < at).limit(limit)
        with self._begin() as connection:
            rows = connection.execute(delete(REQUESTS).where(REQUESTS.c.row_id.in_(old)))
            verdicts = connection.execute(delete(FEEDBACK).where(key.in_(stale)))
            return rows.rowcount + verdicts.rowcount

    def close(self) -> None:
        """See `LedgerStore`."""
        self._engine.dispose()

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        """One transaction, with the database's errors turned into ours.

        Messages of the database may quote values, so only the kind of error is told.
        """
        try:
            with self._engine.begin() as connection:
                yield connection
        except DBAPIError as exc:
            kind = type(exc.orig).__name__
            if _refused(exc):
                raise RowsRefused(kind) from exc
            raise StoreDown(f"the ledger's store failed: {kind}") from exc
        except (StatementError, OverflowError, TypeError, ValueError) as exc:
            raise RowsRefused(type(exc).__name__) from exc
        except SQLAlchemyError as exc:
            raise StoreDown(f"the ledger's store failed: {type(exc).__name__}") from exc


def _refused(error: DBAPIError) -> bool:
    """Whether it is these values, and not the state of the database, that failed."""
    if isinstance(error, ProgrammingError):
        return getattr(error.orig, "sqlstate", None) not in _NOT_READY
    return isinstance(error, (DataError, IntegrityError))


def _selection(query: LedgerQuery) -> Select[Any]:
    of_row = and_(
        FEEDBACK.c.tenant == REQUESTS.c.tenant, FEEDBACK.c.request_id == REQUESTS.c.request_id
    )
    joined = REQUESTS.outerjoin(FEEDBACK, of_row)
    found = select(REQUESTS, FEEDBACK.c.verdict).select_from(joined)
    found = found.where(REQUESTS.c.at >= query.since)
    for name in ("tenant", "level", "reason"):
        value = getattr(query, name)
        if value:
            found = found.where(REQUESTS.c[name] == value)
    key = (REQUESTS.c.at, REQUESTS.c.row_id)
    if query.after is not None:
        found = found.where(tuple_(*key) > query.after)
    order = [column.desc() for column in key] if query.newest else list(key)
    return found.order_by(*order).limit(query.limit)
