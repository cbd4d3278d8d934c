"""Keys fetched from a URL: kept fresh, bounded, and never on a caller's time."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from services.common.auth import jwks
from services.common.auth.config import Issuer
from services.common.auth.jwks import MAX_BYTES, UrlKeys, fetch
from services.common.auth.tokens import TokenVerifier
from services.common.errors import Unauthenticated
from tests.fakes.issuer import AUDIENCE, ISSUER, FakeIssuer


class Server:
    """Serves `body`, slowly if asked to."""

    def __init__(self) -> None:
        outer = self
        self.body, self.status, self.hits, self.drip_s = b"{}", 200, 0, 0.0

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.hits += 1
                self.send_response(outer.status)
                self.send_header("location", "/elsewhere")
                self.end_headers()
                size = 1 if outer.drip_s else len(outer.body) or 1
                try:
                    for at in range(0, len(outer.body), size):
                        self.wfile.write(outer.body[at : at + size])
                        time.sleep(outer.drip_s)
                except OSError:
                    return

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/jwks.json"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def issuer(server: Server, **changes: Any) -> Issuer:
    base = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": server.url, "timeout_ms": 1_000}
    return Issuer.model_validate({**base, **changes})


def test_the_body_comes_past_proxies(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.body = b'{"keys": []}'
    assert fetch(issuer(server)) == server.body


@pytest.mark.parametrize("status", [301, 302, 404, 500])
def test_other_answers_are_errors(server: Server, status: int) -> None:
    server.status = status
    with pytest.raises(OSError, match=str(status)):
        fetch(issuer(server))
    assert server.hits == 1


def test_too_large_and_too_slow(server: Server) -> None:
    server.body = b"x" * (MAX_BYTES + 1)
    with pytest.raises(OSError, match="too large"):
        fetch(issuer(server))
    server.body, server.drip_s = b"x" * 1_000, 0.05
    began = time.monotonic()
    with pytest.raises(OSError, match="too slow"):
        fetch(issuer(server, timeout_ms=300))
    assert time.monotonic() - began < 2.0


async def test_a_provider_that_is_down_stops_nothing(server: Server) -> None:
    server.status = 500
    source = UrlKeys(issuer(server))
    await source.start()
    assert source.keys() == {}
    await source.stop()


async def test_an_unknown_key_hastens_one_fetch(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwks, "MIN_FETCH_S", 0.2)
    old, new = FakeIssuer(), FakeIssuer()
    server.body = json.dumps(old.jwks("RS256")).encode()
    verifier = TokenVerifier([issuer(server)])
    await verifier.start()
    verifier.verify(old.token())
    assert server.hits == 1
    server.body = json.dumps(new.jwks("ES256")).encode()
    for _ in range(100):
        with pytest.raises(Unauthenticated):
            verifier.verify(new.token("ES256"))
    await until(lambda: server.hits == 2)
    verifier.verify(new.token("ES256"))
    with pytest.raises(Unauthenticated):
        verifier.verify(old.token())
    await verifier.stop()


async def test_keys_outlast_a_failing_provider_but_not_for_ever(server: Server) -> None:
    fake = FakeIssuer()
    server.body = json.dumps(fake.jwks()).encode()
    now = 0.0
    source = UrlKeys(issuer(server), clock=lambda: now)
    await source.start()
    server.status = 500
    now = 3_600.0
    assert source.keys()
    now = 3_601.0
    assert not source.keys()
    await source.stop()


async def until(check: Any, within_s: float = 5.0) -> None:
    end = time.monotonic() + within_s
    while not check():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
