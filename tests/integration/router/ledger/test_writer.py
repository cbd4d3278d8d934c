"""The writer over real databases that are stopped, started and hung under load."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.common.errors import ConfigInvalid
from services.router.ledger.access import StoreAccess
from services.router.ledger.entry import Verdict, row_entry
from services.router.ledger.journal import Journal
from services.router.ledger.retention import Retention
from services.router.ledger.spool import Spool
from services.router.ledger.sql_store import SqlLedgerStore
from services.router.ledger.store import LedgerQuery, StoreDown
from services.router.ledger.writer import LedgerWriter
from tests.integration.router.ledger.test_store import row
from tests.tools.postgres_server import PostgresServer

ALL = LedgerQuery(limit=100_000)


def request(number: int) -> dict[str, Any]:
    """A row as the recorder gives it: without an id of its own."""
    made = row(number)
    del made["row_id"]
    return made


def make_writer(
    url: str,
    folder: Path,
    *,
    timeout_s: float = 2.0,
    max_bytes: int = 50_000_000,
    states: list[bool] | None = None,
    max_queued: int = 10_000,
) -> LedgerWriter:
    access = StoreAccess(SqlLedgerStore(url), timeout_s)
    told = states if states is not None else []
    spool = Spool(folder / "spool", max_bytes)
    return LedgerWriter(access, spool, told.append, max_queued=max_queued)


def stored(url: str) -> list[str]:
    store = SqlLedgerStore(url)
    store.prepare()
    found = [each["request_id"] for each in store.query(ALL)]
    store.close()
    return found


def names(count: int) -> list[str]:
    return [f"r{number}" for number in range(count)]


async def load(
    writer: LedgerWriter, count: int, events: dict[int, Callable[[], None]] | None = None
) -> float:
    """Appends `count` rows, a thousand a second; returns the slowest append in milliseconds."""
    slowest = 0.0
    for number in range(count):
        if events and number in events:
            await asyncio.to_thread(events[number])
        started = time.perf_counter()
        writer.append(request(number))
        slowest = max(slowest, (time.perf_counter() - started) * 1000.0)
        if number % 10 == 9:
            await asyncio.sleep(0.01)
    return slowest


async def until(check: Callable[[], bool], within_s: float = 20.0) -> None:
    end = time.monotonic() + within_s
    while not check():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


async def test_what_is_queued_is_stored_at_the_end(url: str, tmp_path: Path) -> None:
    writer = make_writer(url, tmp_path)
    await writer.start()
    await load(writer, 1_200)
    await writer.stop()
    assert stored(url) == names(1_200)


async def test_a_database_that_stops_and_starts_loses_and_doubles_nothing(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    states: list[bool] = []
    writer = make_writer(postgres.url, tmp_path, states=states)
    await writer.start()
    events = {
        300: postgres.stop,
        900: postgres.start,
        1_500: postgres.stop,
        1_800: postgres.start,
    }
    await load(writer, 3_000, events)
    await until(lambda: len(stored(postgres.url)) == 3_000)
    await writer.stop()
    assert stored(postgres.url) == names(3_000)
    assert states[:2] == [False, True]
    assert not list((tmp_path / "spool").glob("*.jsonl"))


async def test_a_database_that_hangs_holds_nobody_up(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    writer = make_writer(postgres.url, tmp_path, timeout_s=0.5)
    await writer.start()
    await load(writer, 200)
    await until(lambda: len(stored(postgres.url)) == 200)
    postgres.pause()
    try:
        await load(writer, 500)
        await asyncio.sleep(1.0)
        assert list((tmp_path / "spool").glob("*.jsonl"))
    finally:
        postgres.resume()
    await until(lambda: len(stored(postgres.url)) == 700)
    await writer.stop()
    assert len(stored(postgres.url)) == 700


async def test_the_end_while_the_database_hangs(postgres: PostgresServer, tmp_path: Path) -> None:
    writer = make_writer(postgres.url, tmp_path, timeout_s=0.5)
    await writer.start()
    await load(writer, 100)
    await until(lambda: len(stored(postgres.url)) == 100)
    postgres.pause()
    try:
        await load(writer, 100)
        await asyncio.wait_for(writer.stop(), 10.0)
    finally:
        postgres.resume()
    await until(lambda: len(stored(postgres.url)) >= 100)
    again = make_writer(postgres.url, tmp_path)
    await again.start()
    await again.stop()
    assert len(stored(postgres.url)) == 200


async def test_a_process_that_ended_while_the_store_was_down_leaves_its_rows_to_the_next(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    postgres.stop()
    try:
        first = make_writer(postgres.url, tmp_path)
        await first.start()
        await load(first, 200)
        await first.save(Verdict("acme", "r7", 5.0, "GOOD"))
        await first.stop()
        second = make_writer(postgres.url, tmp_path)
        await second.start()
        assert await second.has("acme", "r7")
        with pytest.raises(StoreDown):
            await second.has("other", "r7")
    finally:
        postgres.start()
    await until(lambda: len(stored(postgres.url)) == 200)
    await second.stop()
    store = SqlLedgerStore(postgres.url)
    assert [each["verdict"] for each in store.query(ALL)][6:9] == [None, "GOOD", None]
    store.close()


async def test_a_line_that_was_cut_off_costs_only_itself(url: str, tmp_path: Path) -> None:
    store = SqlLedgerStore(url)
    store.prepare()
    spool = Spool(tmp_path / "spool", 1_000_000)
    spool.open()
    spool.close()
    line = (
        '{"row":'
        + '{"row_id":"a","request_id":"r0","at":1,"tenant":"t","ended":"X","attempts":[]}}'
    )
    (tmp_path / "spool" / "000000000007.jsonl").write_text(f"{line}\n{line[:40]}")
    writer = make_writer(url, tmp_path)
    await writer.start()
    writer.append(request(1))
    await writer.stop()
    store.close()
    assert stored(url) == names(2)


async def test_a_bad_row_holds_no_other_up(url: str, tmp_path: Path) -> None:
    writer = make_writer(url, tmp_path)
    await writer.start()
    for number in range(50):
        bad = {"colour": "red"} if number == 13 else {}
        intent = {"intent": "a\0b"} if number == 14 else {}
        writer.append({**request(number), **bad, **intent})
    await writer.stop()
    assert stored(url) == [name for name in names(50) if name != "r13"]


async def test_a_full_spool_loses_the_newest_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    writer = make_writer(f"sqlite:///{tmp_path}/file/ledger.db", tmp_path, max_bytes=20_000)
    await writer.start()
    await load(writer, 300)
    with pytest.raises(StoreDown):
        await writer.save(Verdict("acme", "r1", 5.0, "BAD", "x" * 20_000))
    await writer.stop()
    assert "ledger_spool_full" in capsys.readouterr().out
    spooled = Spool(tmp_path / "spool", 20_000)
    spooled.open()
    assert 0 < spooled.size_bytes <= 20_000
    spooled.close()


async def test_a_full_queue_never_raises(url: str, tmp_path: Path) -> None:
    writer = make_writer(url, tmp_path, max_queued=10)
    await writer.start()
    for number in range(30):
        writer.append(request(number))
    await writer.stop()
    assert stored(url) == names(10)


async def test_one_process_a_spool(url: str, tmp_path: Path) -> None:
    first, second = make_writer(url, tmp_path), make_writer(url, tmp_path)
    await first.start()
    with pytest.raises(ConfigInvalid, match="ledger_spool_dir"):
        await second.start()
    await second.stop()
    await first.stop()


async def test_retention_deletes_to_the_last_old_row(url: str, tmp_path: Path) -> None:
    store = SqlLedgerStore(url)
    store.prepare()
    store.append_many([row(number) for number in range(1_200)])
    access = StoreAccess(store)
    sweeper = Retention(access, days=1.0, clock=lambda: 1_000.0 + 1_150 + 86_400.0)
    assert await sweeper.sweep() == 1_150
    assert len(store.query(ALL)) == 50
    await access.close()


async def test_rows_wait_in_memory_while_neither_store_nor_disk_takes_them(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    writer = make_writer(postgres.url, tmp_path, max_bytes=2_000, timeout_s=0.5)
    await writer.start()
    await load(writer, 20)
    await until(lambda: len(stored(postgres.url)) == 20)
    postgres.stop()
    await load(writer, 200)
    await asyncio.sleep(1.5)
    postgres.start()
    await until(lambda: len(stored(postgres.url)) == 220)
    await writer.stop()
    assert sorted(stored(postgres.url)) == sorted([*names(200), *names(20)])


async def test_a_killed_process_leaves_what_waited_to_the_next(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()
    dead = Journal(folder, segment_bytes=2_000)
    entries = [row_entry(request(number)) for number in range(40)]
    for entry in entries:
        dead.note(entry)
    for entry in entries[:30]:
        dead.kept(entry)
    assert 0 < len(list(folder.glob("*.journal"))) < 40
    writer = make_writer(url, tmp_path)
    await writer.start()
    await until(lambda: set(names(40)[30:]) <= set(stored(url)))
    await writer.stop()
    found = stored(url)
    assert len(found) == len(set(found))
    assert list(folder.glob("*.journal")) == []


async def test_a_journal_holds_only_what_waits(url: str, tmp_path: Path) -> None:
    access = StoreAccess(SqlLedgerStore(url), 2.0)
    journal = Journal(tmp_path / "spool")
    writer = LedgerWriter(access, Spool(tmp_path / "spool", 50_000_000), journal=journal)
    await writer.start()
    writer.append(request(0))
    (file,) = (tmp_path / "spool").glob("*.journal")
    assert b'"r0"' in file.read_bytes()
    await load(writer, 300)
    await until(lambda: file.stat().st_size == 0)
    await writer.stop()
    assert not file.exists()
    assert len(stored(url)) == 301
