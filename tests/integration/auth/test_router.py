"""Who is let in by the router, over real gRPC; all others learn nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from services.common.auth import watch
from services.common.rpc.entrance import Entrance
from services.common.rpc.outward import open_channel, server_options
from services.common.rpc.status import error_from_rpc
from services.router.app import RouterApp
from services.router.config import RouterSettings
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2, router_pb2_grpc
from tests.fakes.issuer import FakeIssuer
from tests.integration.auth.credentials import (
    GOOD,
    READER,
    REVOKED,
    bad_metadata,
    bad_tokens,
    bearer,
    callers,
    revoke,
    write,
)

MESSAGE_BYTES = 1_024 * 1_024


class Router:
    """A router in this process; `Decide` needs no model."""

    def __init__(self, stub: Any) -> None:
        self._stub = stub

    async def decide(self, metadata: Any) -> Any:
        turn = chat_pb2.Message(role=chat_pb2.ROLE_USER, content="hi")
        request = router_pb2.RouteRequest(messages=[turn])
        return await self._stub.Decide(
            router_pb2.DecideRequest(request=request), metadata=metadata, timeout=10
        )

    async def refusal(self, metadata: Any) -> tuple[str, str, str]:
        """All that a refused caller sees."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.decide(metadata)
        error = error_from_rpc(caught.value)
        return error.remote_code.name, error.remote_reason, error.message


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Router]:
    tenants = [{"name": "acme"}, {"name": "other"}]
    file = write(folder, {**callers(folder), "tenants": tenants})
    settings = RouterSettings.model_validate(
        {"tenants_file": str(file), "ledger_url": f"sqlite:///{folder}/ledger.db"}
    )
    app = RouterApp(settings)
    server = grpc.aio.server(
        interceptors=[Entrance(app.admission, 10)], options=server_options(settings.server)
    )
    app.register(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await app.admission.start()
    async with open_channel(f"127.0.0.1:{port}", MESSAGE_BYTES) as channel:
        yield Router(router_pb2_grpc.RouterServiceStub(channel))
    await server.stop(1)
    await app.stop()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "CHECK_S", 0.0)
    monkeypatch.setenv("TANDEM_SERVICE_SECRET", "s" * 40)


@pytest.fixture
async def router(tmp_path: Path) -> AsyncIterator[Router]:
    async with serving(tmp_path) as made:
        yield made


async def test_the_router_refuses_all_alike(router: Router, tmp_path: Path) -> None:
    assert await router.decide(bearer(GOOD))
    assert await router.decide(bearer(REVOKED))
    revoke(tmp_path, "revoked")
    seen = {name: await router.refusal(metadata) for name, metadata in bad_metadata().items()}
    assert len(set(seen.values())) == 1, seen
    code, reason, message = seen["no key"]
    assert (code, reason) == ("UNAUTHENTICATED", "UNAUTHENTICATED")
    assert message == "a valid credential is required in the authorization metadata"


async def test_roles_are_per_method(router: Router) -> None:
    code, reason, message = await router.refusal(bearer(READER))
    assert (code, reason) == ("PERMISSION_DENIED", "PERMISSION_DENIED")
    assert "Decide" not in message


async def test_good_tokens_alone_are_taken(tmp_path: Path) -> None:
    fake = FakeIssuer()
    fake.write(tmp_path / "jwks.json")
    async with serving(tmp_path) as router:
        assert await router.decide(bearer(fake.token("RS256")))
        assert await router.decide(bearer(fake.token("ES256")))
        bad = bad_tokens(fake)
        bad["unknown tenant"] = bearer(fake.token(tenant="nobody"))
        seen = {name: await router.refusal(metadata) for name, metadata in bad.items()}
        assert set(seen.values()) == {await router.refusal(())}, seen
