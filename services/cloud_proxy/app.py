"""Composition root: makes the parts of the proxy and puts them together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import structlog

from services.cloud_proxy.admission import ProxyAdmission
from services.cloud_proxy.breakers import make_breaker
from services.cloud_proxy.config import CALLERS_ENV_PREFIX, Api, CloudSettings, ProviderSettings
from services.cloud_proxy.limits.book import LimitBook
from services.cloud_proxy.limits.guard import Guard
from services.cloud_proxy.limits.settings import make_store, price_table
from services.cloud_proxy.pipeline import Pipeline
from services.cloud_proxy.policy.cost import PriceTable
from services.cloud_proxy.policy.retry import RetryRule
from services.cloud_proxy.providers.anthropic import anthropic_wire
from services.cloud_proxy.providers.body import Dialect
from services.cloud_proxy.providers.http import Endpoint, HttpProvider
from services.cloud_proxy.providers.openai import openai_wire
from services.cloud_proxy.record import Recorder, TierFacts
from services.cloud_proxy.redaction.gate import Gate, Rule
from services.cloud_proxy.request import Tier
from services.cloud_proxy.route import Route
from services.cloud_proxy.server import SERVICE_NAME, CloudProxyServicer
from services.cloud_proxy.upstream import Upstream
from services.common.auth.callers import Authenticator
from services.common.auth.config import Callers
from services.common.auth.watch import WatchedFile
from services.common.deadline import BudgetLimits
from services.common.errors import ConfigInvalid
from services.common.identity import (
    check_secret,
    read_secret,
)
from services.common.pii.combined import open_detector
from services.common.rpc.readiness import Readiness
from services.common.settings import load_settings
from tandem.cloud.v1 import cloud_pb2_grpc

_log = structlog.get_logger()
# Long enough to load modules before the first call; what is slower goes on beside it.
_WARM_WAIT_S = 0.5
# Loads the tables that telephone numbers are looked up in.
_WARM_TEXT = "+44 20 7946 0958"
_WIRES = {Api.OPENAI: openai_wire, Api.ANTHROPIC: anthropic_wire}


class CloudApp:
    """The proxy as `run_service` wants it."""

    name = "cloud"
    service_names = (SERVICE_NAME,)

    def __init__(self, settings: CloudSettings) -> None:
        secret = read_secret(
            settings.service_secret_file, settings.service_secret_env, "service_secret_file"
        )
        check_secret(secret, "service_secret_file / " + settings.service_secret_env)
        limits = BudgetLimits(settings.budget.default_ms, settings.budget.max_ms)
        self.admission = ProxyAdmission(secret, limits, _callers(settings.callers_file))
        recorder = Recorder()
        self._detector = open_detector(entities=settings.pii_entities)
        self._warming: asyncio.Future[list[None]] | None = None
        book = settings.limits.book()
        self._tiers = {
            tier: Upstream(
                [
                    _route(tier, each, recorder, _prices(settings, each, book), where)
                    for where, each in one.named(f"tiers.{tier.value}")
                ]
            )
            for tier, one in (
                (Tier.SMALL, settings.tiers.small),
                (Tier.LARGE, settings.tiers.large),
            )
        }
        gate = Gate(self._detector, settings.pii, settings.pii_tenants)
        self._guard = Guard(book, make_store(settings.limits, settings.replicas))
        self._pipeline = Pipeline(gate, self._tiers, recorder, self._guard)
        self._rules = {"": settings.pii, **settings.pii_tenants}

    def register(self, server: grpc.aio.Server) -> None:
        """See `App.register`."""
        servicer = CloudProxyServicer(self._pipeline)
        cloud_pb2_grpc.add_CloudProxyServiceServicer_to_server(servicer, server)

    async def start(self, readiness: Readiness) -> None:
        """Says what this proxy will do, and warms up; a provider that is down stops nothing."""
        allowed = sorted(tenant or "*" for tenant, r in self._rules.items() if r is Rule.ALLOW)
        if allowed:
            _log.warning("pii_allowed", tenants=allowed, note="their personal data may leave")
        for upstream in self._tiers.values():
            upstream.introduce()
        await self.admission.start()
        await asyncio.to_thread(self._detector.find, _WARM_TEXT)
        self._warming = asyncio.gather(*(upstream.warm() for upstream in self._tiers.values()))
        await asyncio.wait({self._warming}, timeout=_WARM_WAIT_S)

    async def stop(self) -> None:
        """Closes the pools."""
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.gather(self._warming, return_exceptions=True)
        for upstream in self._tiers.values():
            await upstream.close()
        await self._guard.close()
        await self.admission.stop()


def _callers(file: str) -> Authenticator[Callers] | None:
    if not file:
        return None
    return Authenticator(
        WatchedFile(Path(file), lambda path: load_settings(Callers, path, CALLERS_ENV_PREFIX))
    )


def _prices(settings: CloudSettings, provider: ProviderSettings, book: LimitBook) -> PriceTable:
    model = provider.price_as or provider.model
    return price_table(settings.prices, model, needed=book.has_budget())


def _route(
    tier: Tier, settings: ProviderSettings, recorder: Recorder, prices: PriceTable, where: str
) -> Route:
    facts = TierFacts(
        tier=tier,
        provider=settings.provider,
        model=settings.model,
        standin=settings.standin,
        prices=prices,
        retry=RetryRule(settings.retry, settings.retry_steps_ms),
        max_output_tokens=settings.max_output_tokens,
    )
    wire = _WIRES[settings.api](_dialect(settings), _api_key(settings, f"{where}.api_key_file"))
    provider = HttpProvider(_endpoint(settings), wire)
    breaker = make_breaker(facts, settings.breaker)
    return Route(facts, provider, breaker, recorder, weight=settings.weight)


def _endpoint(settings: ProviderSettings) -> Endpoint:
    return Endpoint(
        provider=settings.provider,
        base_url=settings.base_url,
        stall_ms=settings.stall_ms,
        first_chunk_ms=settings.first_chunk_ms or settings.stall_ms,
        connect_ms=settings.connect_ms,
        max_response_bytes=settings.max_response_bytes,
        max_connections=settings.max_connections,
        keepalive_s=settings.keepalive_s,
        ca_file=settings.ca_file,
    )


def _api_key(settings: ProviderSettings, where: str) -> str:
    key = read_secret(settings.api_key_file, settings.api_key_env, where)
    if not key and (settings.api_key_file or settings.api_key_env):
        raise ConfigInvalid(f"{where} / {settings.api_key_env}: names a key, and none is there")
    if not key.isascii() or not key.isprintable():
        raise ConfigInvalid(f"{where}: a key is printable ASCII in one line")
    return key


def _dialect(settings: ProviderSettings) -> Dialect:
    return Dialect(
        model=settings.model,
        max_output_tokens=settings.max_output_tokens,
        max_tokens_field=settings.max_tokens_field,
        top_k=settings.top_k,
        logprobs=settings.logprobs,
        sampling=settings.sampling,
    )
