"""Database engines by URL: SQLite and PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from services.common.errors import ConfigInvalid

_BUSY_S = 2.0
_POSTGRES_ARGUMENTS = {
    "connect_timeout": 3,  # seconds
    "tcp_user_timeout": 5_000,  # ms without an acknowledgement
    "application_name": "tandem-router",
    "options": "-c statement_timeout=10000 -c lock_timeout=5000",  # ms
}


def parse_url(url: str) -> URL:
    """Reads `sqlite:///PATH` or `postgresql://…`.

    Raises:
        ConfigInvalid: It is something else; the message does not repeat it, since URLs
            hold passwords.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is not None and parsed.drivername == "sqlite" and parsed.database:
        return parsed
    if parsed is not None and parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    raise ConfigInvalid("ledger_url: must be sqlite:///PATH or postgresql://USER@HOST/DATABASE")


def open_engine(url: URL, *, read_only: bool = False) -> Engine:
    """An engine that connects when used; `read_only` refuses writes and makes no file."""
    if url.get_backend_name() == "sqlite":
        return _open_sqlite(Path(url.database or ""), read_only)
    # What the URL says itself stands.
    arguments = {key: value for key, value in _POSTGRES_ARGUMENTS.items() if key not in url.query}
    engine = create_engine(
        url,
        connect_args=arguments,
        pool_size=1,
        max_overflow=1,
        pool_pre_ping=True,
        hide_parameters=True,  # errors quote no values
    )
    if read_only:
        return engine.execution_options(postgresql_readonly=True)
    return engine


def _open_sqlite(path: Path, read_only: bool) -> Engine:
    mode = "rw" if read_only else "rwc"
    database = f"file:{quote(str(path.absolute()))}"
    url = URL.create("sqlite", database=database, query={"mode": mode, "uri": "true"})
    engine = create_engine(url, connect_args={"timeout": _BUSY_S}, hide_parameters=True)

    def connect(connection: Any, record: Any) -> None:
        if read_only:
            connection.execute("PRAGMA query_only=ON")
        else:
            connection.execute("PRAGMA journal_mode=WAL")
            # A batch that was taken outlives a power cut; one fsync a batch.
            connection.execute("PRAGMA synchronous=FULL")

    event.listen(engine, "connect", connect)
    return engine
