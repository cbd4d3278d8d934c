"""What every store of the ledger does, over SQLite and over PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from services.common.errors import ConfigInvalid
from services.router.ledger.engine import open_engine, parse_url
from services.router.ledger.entry import Verdict
from services.router.ledger.schema import METADATA
from services.router.ledger.sql_store import SqlLedgerStore
from services.router.ledger.store import LedgerQuery, RowsRefused, StoreDown
from tests.tools.postgres_server import PostgresServer


def row(number: int, **changes: Any) -> dict[str, Any]:
    values = {
        "row_id": f"{number:032d}",
        "request_id": f"r{number}",
        "at": 1_000.0 + number,
        "tenant": "acme",
        "ended": "ANSWERED",
        "level": "L0",
        "reason": "DEFAULT",
        "attempts": [{"index": 0, "level": "L0", "ms": 1.5}],
        "pii_kinds": ["EMAIL"],
        "stage_ms": {"screen": 0.1},
        "degraded": False,
        "ttft_ms": None,
    }
    return {**values, **changes}


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [found["request_id"] for found in rows]


def verdict(request_id: str, at: float, name: str = "BAD", tenant: str = "acme") -> Verdict:
    return Verdict(tenant, request_id, at, name)


def test_a_row_comes_back_as_it_went_in(store: SqlLedgerStore) -> None:
    store.append_many([row(1, model_id="模型", cost_micro_usd=2**40)])
    (found,) = store.query(LedgerQuery())
    expected = row(1, model_id="模型", cost_micro_usd=2**40, verdict=None)
    assert {name: found[name] for name in expected} == expected
    assert found["shadow"] is None


def test_a_row_stored_twice_is_there_once(store: SqlLedgerStore) -> None:
    store.append_many([row(1), row(2)])
    store.append_many([row(2, level="L3"), row(3)])
    found = store.query(LedgerQuery())
    assert ids(found) == ["r1", "r2", "r3"]
    assert found[1]["level"] == "L0"


def test_two_requests_under_one_id_of_the_caller_are_two_rows(store: SqlLedgerStore) -> None:
    store.append_many([row(1, request_id="same"), row(2, request_id="same")])
    assert len(store.query(LedgerQuery())) == 2


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (LedgerQuery(since=1_004.0), ["r4", "r5"]),
        (LedgerQuery(tenant="other"), ["r2"]),
        (LedgerQuery(level="L2"), ["r3"]),
        (LedgerQuery(reason="PII_PIN"), ["r4"]),
        (LedgerQuery(limit=2), ["r4", "r5"]),
        (LedgerQuery(limit=2, newest=False), ["r1", "r2"]),
        (LedgerQuery(newest=False, after=(1_003.0, f"{3:032d}")), ["r4", "r5"]),
        (LedgerQuery(tenant="nobody"), []),
    ],
)
def test_queries(store: SqlLedgerStore, query: LedgerQuery, expected: list[str]) -> None:
    store.append_many(
        [row(1), row(2, tenant="other"), row(3, level="L2"), row(4, reason="PII_PIN"), row(5)]
    )
    assert ids(store.query(query)) == expected


def test_has_tells_tenants_apart(store: SqlLedgerStore) -> None:
    store.append_many([row(1)])
    assert store.has("acme", "r1")
    assert not store.has("other", "r1")
    assert not store.has("acme", "r2")


def test_of_two_verdicts_the_later_stands(store: SqlLedgerStore) -> None:
    store.append_many([row(1), row(2), row(3, request_id="r1", tenant="other")])
    store.set_verdict([verdict("r1", 5.0), verdict("r1", 7.0, "GOOD"), verdict("r1", 6.0)])
    assert [found["verdict"] for found in store.query(LedgerQuery())] == ["GOOD", None, None]


def test_a_verdict_may_come_before_its_row(store: SqlLedgerStore) -> None:
    store.set_verdict([verdict("r1", 5.0)])
    store.append_many([row(1)])
    assert store.query(LedgerQuery())[0]["verdict"] == "BAD"


def test_what_is_too_old_goes_in_small_batches(store: SqlLedgerStore) -> None:
    store.append_many([row(number) for number in range(1, 8)])
    store.set_verdict([verdict("r1", 1_001.0), verdict("r7", 1_007.0)])
    assert store.delete_before(1_006.0, 3) == 4
    assert store.delete_before(1_006.0, 3) == 2
    assert store.delete_before(1_006.0, 3) == 0
    assert ids(store.query(LedgerQuery())) == ["r6", "r7"]


@pytest.mark.parametrize(
    "bad",
    [
        {"tenant": None},
        {"row_id": None},
        {"cost_micro_usd": 2**80},
        {"at": [1]},
        {"colour": "red"},
    ],
)
def test_a_bad_row_is_refused_and_none_of_its_batch_stored(
    store: SqlLedgerStore, bad: dict[str, Any]
) -> None:
    with pytest.raises(RowsRefused):
        store.append_many([row(1), row(2, **bad)])
    assert store.query(LedgerQuery()) == []


def test_tables_are_those_of_the_schema_and_prepare_may_be_repeated(
    store: SqlLedgerStore, url: str
) -> None:
    store.append_many([row(1)])
    store.prepare()
    assert len(store.query(LedgerQuery())) == 1
    engine = open_engine(parse_url(url))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    engine.dispose()


def test_processes_that_start_together_take_turns(url: str) -> None:
    if url.startswith("sqlite"):
        url += "-shared"
    stores = [SqlLedgerStore(url) for _ in range(4)]
    if not url.startswith("sqlite"):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda each: each.prepare(), stores))
    else:
        for each in stores:
            each.prepare()
    stores[0].append_many([row(1)])
    assert stores[3].has("acme", "r1")
    for each in stores:
        each.close()


def test_a_reader_cannot_write(store: SqlLedgerStore, url: str) -> None:
    store.append_many([row(1)])
    reader = SqlLedgerStore(url, read_only=True)
    assert len(reader.query(LedgerQuery())) == 1
    with pytest.raises((StoreDown, RowsRefused)):
        reader.append_many([row(2)])
    reader.close()


def test_before_the_tables_are_made_the_store_counts_as_down(url: str) -> None:
    store = SqlLedgerStore(url, read_only=True)
    with pytest.raises(StoreDown):
        store.query(LedgerQuery())
    store.close()


def test_a_service_file_may_name_the_database(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As deploy/k8s/components/postgres does it."""
    file = tmp_path / "pg_service.conf"
    lines = f"[tandem]\nhost=127.0.0.1\nport={postgres.port}\nuser=postgres\ndbname=postgres\n"
    file.write_text(lines)
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    store = SqlLedgerStore("postgresql:///?service=tandem")
    store.prepare()
    store.append_many([row(1)])
    assert store.has("acme", "r1")
    store.close()


@pytest.mark.parametrize(
    "url", ["", "ledger.db", "mysql://db/x", "sqlite://", "sqlite:///", "postgresql+asyncpg://db/x"]
)
def test_other_urls_are_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigInvalid, match="ledger_url: must be"):
        SqlLedgerStore(url)
