"""The port in plain HTTP: what it answers, and to whom it does not."""

from __future__ import annotations

import asyncio

import pytest

from services.common.errors import ConfigInvalid
from services.common.rpc import plain
from services.common.rpc.plain import PlainPort


async def ask(address: str, text: str) -> str:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(text.encode())
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    await writer.wait_closed()
    return answer.decode()


def get(path: str) -> str:
    return f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n"


async def test_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "_PATIENCE_S", 0.3)
    ready = False
    port = PlainPort(lambda: ready)
    address = await port.open("127.0.0.1:0")
    try:
        assert (await ask(address, get("/livez"))).startswith("HTTP/1.1 200 OK\r\n")
        assert (await ask(address, get("/readyz"))).startswith("HTTP/1.1 503 ")
        ready = True
        assert (await ask(address, get("/readyz?verbose"))).endswith("\r\n\r\nready\n")
        metrics = await ask(address, get("/metrics"))
        assert "\nprocess_resident_memory_bytes " in metrics
        assert (await ask(address, get("/other"))).startswith("HTTP/1.1 404 ")
        assert (await ask(address, "POST /metrics HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 405 ")
        # Neither silence nor a head without an end is waited for.
        assert await ask(address, "GET /metr") == ""
        assert await ask(address, "GET /" + "a" * 20_000) == ""
    finally:
        await port.close()


@pytest.mark.parametrize("listen", ["9464", "127.0.0.1:port", "127.0.0.1:99999", "192.0.2.1:1"])
async def test_an_address_that_cannot_be_listened_on_is_told(listen: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"telemetry\.metrics_listen"):
        await PlainPort(lambda: True).open(listen)
