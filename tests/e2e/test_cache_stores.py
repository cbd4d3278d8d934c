"""Redis and PostgreSQL as the cache's stores, stopped and started while requests come."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import psycopg
import pytest

from services.common.embedding.files import DEFAULT_DIR
from services.common.embedding.kit import build_embedder
from tests.e2e.conftest import BURN
from tests.e2e.harness import Tandem, eventually, question
from tests.tools.postgres_server import PostgresServer
from tests.tools.redis_server import RedisServer

ONE = "Explain why leaves of trees turn yellow"
LIKE = "Explain why the leaves of the trees turn yellow"


@pytest.fixture(scope="module")
def stores() -> Iterator[tuple[RedisServer, PostgresServer]]:
    with RedisServer() as redis, PostgresServer() as postgres:
        yield redis, postgres


@pytest.fixture(scope="module")
def tandem(
    stores: tuple[RedisServer, PostgresServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tandem]:
    build_embedder(DEFAULT_DIR)
    redis, postgres = stores
    settings = {
        "TANDEM_ROUTER__CACHE__ENABLED": "true",
        "TANDEM_ROUTER__EMBEDDER_DIR": str(DEFAULT_DIR),
        "TANDEM_ROUTER__CACHE__EXACT_URL": redis.url,
        "TANDEM_ROUTER__CACHE__VECTORS_URL": postgres.url,
        "TANDEM_ROUTER__CACHE__TIMEOUT_MS": "5000",
    }
    system = Tandem(Path(tmp_path_factory.mktemp("stores")), BURN, router=settings)
    yield system
    system.close()


def _rows(postgres: PostgresServer) -> int:
    with psycopg.connect(postgres.url) as connection:
        row = connection.execute("SELECT count(*) FROM tandem_cache_vectors_1").fetchone()
    return int(row[0]) if row else 0


def test_stores_that_go_and_come_fail_no_request(
    tandem: Tandem, stores: tuple[RedisServer, PostgresServer]
) -> None:
    redis, postgres = stores
    tandem.stream(question(ONE))
    eventually(lambda: tandem.stream(question(ONE)).served[2] == "CACHE_EXACT", "exact hit")
    eventually(lambda: _rows(postgres) == 1, "the question's vector is stored")
    assert tandem.stream(question(LIKE)).served[2] == "CACHE_SEMANTIC"
    redis.stop()
    postgres.stop()
    texts = [f"Prove that {number} is not a prime" for number in (4, 6, 8, 9, 10, 12)]
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda text: tandem.stream(question(text)), [*texts, ONE]))
    assert {result.code for result in results} == {grpc.StatusCode.OK}
    assert {result.served[1] for result in results} == {"CLOUD_LARGE"}
    redis.start()
    postgres.start()
    eventually(lambda: tandem.stream(question(ONE)).served[1] == "CACHE", "hits are back")
