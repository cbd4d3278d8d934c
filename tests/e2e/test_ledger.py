"""Feedback, and a PostgreSQL ledger that is stopped and started under load."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from services.router.ledger.sql_store import SqlLedgerStore
from services.router.ledger.store import LedgerQuery
from tandem.router.v1 import router_pb2
from tests.e2e.conftest import BURN
from tests.e2e.harness import Tandem, eventually, question
from tests.tools.postgres_server import PostgresServer

SAY = "capital? [[say:Tokyo.]]"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="module")
def tandem(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Tandem]:
    folder = Path(tmp_path_factory.mktemp("ledger"))
    system = Tandem(
        folder,
        BURN,
        router={
            "TANDEM_ROUTER__LEDGER_URL": postgres.url,
            "TANDEM_ROUTER__LEDGER_SPOOL_DIR": str(folder / "spool"),
        },
    )
    yield system
    system.close()


def rows(postgres: PostgresServer) -> list[dict[str, Any]]:
    store = SqlLedgerStore(postgres.url, read_only=True)
    try:
        return store.query(LedgerQuery(limit=10_000))
    finally:
        store.close()


def ask(tandem: Tandem) -> str:
    """Asks once; returns the request id. AssertionError where the request failed."""
    result = tandem.stream(question(SAY))
    assert result.code is grpc.StatusCode.OK, result.details
    return result.events[0].decision.request_id


def judge(tandem: Tandem, request_id: str, verdict: int, text: str = "") -> None:
    request = router_pb2.FeedbackRequest(
        request_id=request_id,
        verdict=verdict,  # type: ignore[arg-type]
        corrected_text=text,
    )
    tandem.stub.Feedback(request, timeout=10)


def verdict_of(postgres: PostgresServer, request_id: str) -> Any:
    return {row["request_id"]: row["verdict"] for row in rows(postgres)}.get(request_id)


def test_a_verdict_stands_beside_its_row(tandem: Tandem, postgres: PostgresServer) -> None:
    request_id = ask(tandem)
    judge(tandem, request_id, router_pb2.VERDICT_GOOD)
    judge(tandem, request_id, router_pb2.VERDICT_CORRECTED, "Kyoto, once.")
    eventually(lambda: verdict_of(postgres, request_id) == "CORRECTED", "the verdict")


@pytest.mark.parametrize(
    ("request_id", "verdict", "code"),
    [
        ("unknown", router_pb2.VERDICT_GOOD, grpc.StatusCode.NOT_FOUND),
        ("", router_pb2.VERDICT_GOOD, grpc.StatusCode.INVALID_ARGUMENT),
        ("unknown", router_pb2.VERDICT_UNSPECIFIED, grpc.StatusCode.INVALID_ARGUMENT),
        ("unknown", router_pb2.VERDICT_CORRECTED, grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
def test_bad_feedback(tandem: Tandem, request_id: str, verdict: int, code: grpc.StatusCode) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        judge(tandem, request_id, verdict)
    assert caught.value.code() is code


def test_a_store_that_stops_and_starts_costs_no_request_and_no_row(
    tandem: Tandem, postgres: PostgresServer
) -> None:
    """Six callers all the while; the store is away twice, once while a verdict comes."""
    before = {row["row_id"] for row in rows(postgres)}
    over = threading.Event()

    def caller() -> list[str]:
        asked = []
        while not over.is_set():
            asked.append(ask(tandem))
        return asked

    with ThreadPoolExecutor(6) as pool:
        callers = [pool.submit(caller) for _ in range(6)]
        try:
            time.sleep(1.0)
            postgres.stop()
            time.sleep(2.0)
            judged = ask(tandem)
            judge(tandem, judged, router_pb2.VERDICT_BAD)
            told = [tandem.healthy(tandem.router, name) for name in ("readiness", "ledger")]
            postgres.start()
            time.sleep(1.5)
            postgres.stop()
            time.sleep(0.5)
            postgres.start()
            time.sleep(1.0)
        finally:
            over.set()
        asked = [each for done in callers for each in done.result()] + [judged]
    assert len(asked) > 20

    def new() -> list[str]:
        return [row["request_id"] for row in rows(postgres) if row["row_id"] not in before]

    eventually(lambda: len(new()) >= len(asked), "all rows", 20)
    assert sorted(new()) == sorted(asked)
    assert verdict_of(postgres, judged) == "BAD"
    assert told == [True, False]
    assert tandem.healthy(tandem.router, "ledger")


def test_a_router_that_ends_while_the_store_is_away_leaves_its_rows_on_disk(
    tandem: Tandem, postgres: PostgresServer
) -> None:
    """Last in this module: the router is gone after it."""
    postgres.stop()
    try:
        asked = [ask(tandem) for _ in range(5)]
        tandem.router.process.terminate()
        assert tandem.router.process.wait(30) == 0
    finally:
        postgres.start()
    lines = "".join(
        file.read_text() for file in (tandem.ledger_file.parent / "spool").glob("*.jsonl")
    )
    assert all(lines.count(f'"{request_id}"') == 1 for request_id in asked)
    assert "Tokyo" not in lines
