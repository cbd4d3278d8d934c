"""Callers that reach the proxy without the router, and limits per key."""

from __future__ import annotations

import time
from pathlib import Path

import grpc
import pytest

from services.common.auth import watch
from services.common.identity import CLAIM_KEY, service_token, sign_claim
from services.common.rpc.status import error_from_rpc
from tests.fakes.upstream_process import UpstreamProcess
from tests.integration.auth.credentials import (
    GOOD,
    OTHER,
    bad_metadata,
    bearer,
    callers,
    revoke,
    write,
)
from tests.integration.cloud_proxy.conftest import SECRET, MakeProxy


async def test_the_proxy_takes_callers_of_its_file(
    make_proxy: MakeProxy,
    upstream: UpstreamProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "CHECK_S", 0.0)
    file = write(tmp_path, callers(tmp_path))
    limits = {"tenants": {"other": {"concurrent": 0}}}
    proxy = await make_proxy(callers_file=str(file), limits=limits)
    upstream.default(text="hello")
    assert (await proxy.collect(metadata=bearer(GOOD))).text == "hello"
    assert (await proxy.collect()).text == "hello"
    calls = len(upstream.seen())
    revoke(tmp_path, "revoked")
    # A claim for another tenant goes with the router's token alone, and only signed by it.
    claim = (CLAIM_KEY, sign_claim(SECRET, "acme", time.time()))
    forged = (CLAIM_KEY, sign_claim("x" * 40, "acme", time.time()))
    token = ("authorization", f"Bearer {service_token(SECRET, 'router')}")
    bad = {
        **bad_metadata(),
        "another tenant": (*bearer(OTHER), claim),
        "another tenant, forged": (*bearer(OTHER), forged),
        "the router's token, forged claim": (token, forged),
        "the router's token alone": (token,),
    }
    seen = set()
    for metadata in bad.values():
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await proxy.collect(metadata=metadata)
        error = error_from_rpc(caught.value)
        seen.add((error.remote_code.name, error.remote_reason, error.message))
    assert len(seen) == 1
    assert seen.pop()[0] == "UNAUTHENTICATED"
    # A caller of its own tenant falls under that tenant's limits, not another's.
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await proxy.collect(metadata=bearer(OTHER))
    assert error_from_rpc(caught.value).remote_reason == "RATE_LIMITED"
    assert len(upstream.seen()) == calls


async def test_limits_of_one_key_beside_its_tenants(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    upstream.default(text="a")
    settings = {"keys": {"ci": {"requests_per_min": 1}}, "tenant": {"requests_per_min": 3}}
    proxy = await make_proxy(limits=settings)
    token = ("authorization", f"Bearer {service_token(SECRET, 'router')}")
    served = {}
    for key in ("ci", "web"):
        claim = (CLAIM_KEY, sign_claim(SECRET, "acme", time.time(), key))
        served[key] = 0
        for _ in range(4):
            try:
                await proxy.collect(metadata=(token, claim))
                served[key] += 1
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert served == {"ci": 1, "web": 2}
