"""A real PostgreSQL, and the ledger's store over each kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from services.router.ledger.engine import open_engine, parse_url
from services.router.ledger.sql_store import SqlLedgerStore
from tests.tools.postgres_server import PostgresServer

MakeStore = Callable[[], SqlLedgerStore]


@pytest.fixture(scope="session")
def postgres_process() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres(postgres_process: PostgresServer) -> PostgresServer:
    """The server, without tables."""
    engine = open_engine(parse_url(postgres_process.url))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return postgres_process


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/a folder/ledger.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.url


@pytest.fixture
def store(url: str) -> Iterator[SqlLedgerStore]:
    made = SqlLedgerStore(url)
    made.prepare()
    yield made
    made.close()
