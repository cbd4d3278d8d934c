"""A real proxy in this process, on a free port, in front of the fake upstream's process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from grpc_health.v1._async import HealthServicer

from services.cloud_proxy.app import CloudApp
from services.cloud_proxy.config import CloudSettings
from services.common.identity import CLAIM_KEY, service_token, sign_claim
from services.common.rpc.entrance import Entrance
from services.common.rpc.outward import open_channel, server_options
from services.common.rpc.readiness import Readiness
from tandem.cloud.v1 import cloud_pb2, cloud_pb2_grpc
from tandem.common.v1 import chat_pb2
from tests.fakes.upstream_process import UpstreamProcess

SECRET = "integration-secret-integration-secret"
KEY = "sk-provider-key-that-nobody-may-see-0123456789"
MESSAGE_BYTES = 4 * 1024 * 1024


@pytest.fixture(scope="session")
def upstream_process() -> Iterator[UpstreamProcess]:
    with UpstreamProcess() as process:
        yield process


@pytest.fixture
def upstream(upstream_process: UpstreamProcess) -> UpstreamProcess:
    upstream_process.reset()
    return upstream_process


@dataclass
class Proxy:
    """A running proxy and a stub to it."""

    stub: Any
    secret: str = SECRET

    def metadata(self, tenant: str = "acme", **more: str) -> tuple[tuple[str, str], ...]:
        return (
            ("authorization", f"Bearer {service_token(self.secret, 'router')}"),
            (CLAIM_KEY, sign_claim(self.secret, tenant, time.time())),
            ("deadline_ms", more.pop("deadline_ms", "10000")),
            *more.items(),
        )

    def open(self, text: str = "Say hello", **kwargs: Any) -> Any:
        """Opens a stream; `metadata` and `timeout` as for gRPC, the rest are fields."""
        metadata = kwargs.pop("metadata", self.metadata())
        timeout = kwargs.pop("timeout", 20)
        return self.stub.Generate(ask(text, **kwargs), metadata=metadata, timeout=timeout)

    async def collect(self, text: str = "Say hello", **kwargs: Any) -> Collected:
        """A whole answer."""
        return Collected([event async for event in self.open(text, **kwargs)])


@dataclass
class Collected:
    """The events of one answer."""

    events: list[Any]

    @property
    def started(self) -> Any:
        return self.events[0].started

    @property
    def finished(self) -> Any:
        return self.events[-1].finished

    @property
    def text(self) -> str:
        return "".join(e.delta.text for e in self.events if e.WhichOneof("event") == "delta")


def ask(text: str, **fields: Any) -> cloud_pb2.GenerateRequest:
    message = chat_pb2.Message(role=chat_pb2.ROLE_USER, content=text)
    return cloud_pb2.GenerateRequest(
        **{"tier": cloud_pb2.TIER_SMALL, "messages": [message], **fields}
    )


PRICES = [
    {
        "model": model,
        "from": "2026-01-01",
        "input_usd_per_million": 1.0,
        "output_usd_per_million": 4.0,
    }
    for model in ("fake-small", "fake-large")
]


def tier(base_url: str, **changes: Any) -> dict[str, Any]:
    return {
        "provider": "fake",
        "base_url": base_url,
        "model": "fake-small",
        "api_key_env": "FAKE_PROVIDER_KEY",
        "stall_ms": 400,
        "retry": "backoff",
        "retry_steps_ms": [20, 20, 20],
        **changes,
    }


MakeProxy = Callable[..., Any]


@pytest.fixture
async def make_proxy(
    upstream: UpstreamProcess, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[MakeProxy]:
    """Starts proxies: `await make_proxy(pii="allow", small={"stall_ms": 100})`."""
    monkeypatch.setenv("FAKE_PROVIDER_KEY", KEY)
    monkeypatch.setenv("TANDEM_SERVICE_SECRET", SECRET)
    async with AsyncExitStack() as stack:

        async def make(small: dict[str, Any] | None = None, **settings: Any) -> Proxy:
            base_url = settings.pop("base_url", upstream.base_url)
            tiers = {
                "small": tier(base_url, **(small or {})),
                "large": tier(base_url, model="fake-large", standin=True),
            }
            cloud = CloudSettings.model_validate({"tiers": tiers, "prices": PRICES, **settings})
            app = CloudApp(cloud)
            server = grpc.aio.server(
                interceptors=[Entrance(app.admission, cloud.server.max_concurrent_calls)],
                options=server_options(cloud.server),
            )
            app.register(server)
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            await app.start(Readiness(HealthServicer(), app.service_names))
            stack.push_async_callback(app.stop)
            stack.push_async_callback(server.stop, 1)
            channel = open_channel(f"127.0.0.1:{port}", MESSAGE_BYTES)
            stack.push_async_callback(channel.close)
            return Proxy(cloud_pb2_grpc.CloudProxyServiceStub(channel))

        yield make
