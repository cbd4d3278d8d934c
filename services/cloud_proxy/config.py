"""Settings of the proxy; `config/cloud.yaml` shows them with comments."""

from __future__ import annotations

import ipaddress
from enum import StrEnum
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from services.cloud_proxy.limits.settings import LimitsSettings, PriceSettings
from services.cloud_proxy.policy.retry import RetryMode
from services.cloud_proxy.redaction.gate import Rule
from services.common.breaker import BreakerSettings
from services.common.settings import ServerSettings, Settings, TelemetrySettings

ENV_PREFIX = "TANDEM_CLOUD"
CALLERS_ENV_PREFIX = "TANDEM_CLOUD_CALLERS"


class Api(StrEnum):
    """Protocols of providers."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class ProviderBreaker(BreakerSettings):
    """When a provider is left alone for a while."""

    failure_share: float = Field(default=0.2, gt=0, le=1)
    cool_s: float = Field(default=30.0, ge=0)


class ProviderSettings(Settings):
    """One model at one provider."""

    api: Api = Api.OPENAI
    """How it is spoken: any OpenAI-compatible endpoint, or Anthropic's Messages API."""
    provider: str = Field(default="openai", pattern=r"^[a-z0-9_-]{1,32}$")
    """Name in logs, metrics and answers."""
    base_url: str
    """Up to and including `/v1`; https, save for loopback and stand-ins."""
    model: str = Field(min_length=1)
    api_key_file: str = ""
    """A mounted file with the key."""
    api_key_env: str = ""
    """Else the environment variable that holds it; both empty: no key is sent."""
    ca_file: str = ""
    """More trusted certificates (PEM)."""
    standin: bool = False
    """True where no real provider answers; told in answers, spans and logs."""
    max_output_tokens: int = Field(default=800, ge=1)
    price_as: str = ""
    """Whose price in `prices` counts; empty: `model`'s own."""
    stall_ms: int = Field(default=10_000, ge=1)
    """Longest silence between chunks."""
    first_chunk_ms: int = Field(default=0, ge=0)
    """Longest wait for the first chunk; 0: `stall_ms`."""
    connect_ms: int = Field(default=2_000, ge=1)
    retry: RetryMode = RetryMode.BACKOFF
    retry_steps_ms: tuple[int, ...] = (200, 500, 1_000)
    """Upper ends of the full-jitter waits, one a retry."""
    breaker: ProviderBreaker = ProviderBreaker()
    max_response_bytes: int = Field(default=4 * 1024 * 1024, ge=1_024)
    max_connections: int = Field(default=512, ge=1)
    """As many as `server.max_concurrent_calls`, so that no call waits for one."""
    keepalive_s: int = Field(default=120, ge=0)
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    top_k: bool = False
    """Whether the endpoint knows `top_k`."""
    logprobs: bool = False
    """Whether to ask for log-probabilities."""
    sampling: bool = True
    """Whether to send temperature, top_p and top_k, which newer models refuse."""

    weight: int = Field(default=0, ge=0)
    """Share of the calls, of all weights of the tier; 0: only where the weighted ones fail."""

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise ValueError("must be an http(s) URL without credentials in it")
        return value

    @model_validator(mode="after")
    def _is_safe(self) -> ProviderSettings:
        parts = urlsplit(self.base_url)
        if parts.scheme == "http" and not self.standin and not _is_loopback(parts.hostname or ""):
            raise ValueError("base_url must be https: the key and the prompt would go in clear")
        return self


class TierSettings(ProviderSettings):
    """One size of model: its first provider, and others beside or behind it."""

    weight: int = Field(default=1, ge=0)
    fallbacks: tuple[ProviderSettings, ...] = ()
    """Of the same form. By their weight they share the calls; all are tried where one fails."""

    def named(self, where: str) -> tuple[tuple[str, ProviderSettings], ...]:
        """All providers with the paths of their settings, the tier's own first."""
        others = ((f"{where}.fallbacks[{i}]", one) for i, one in enumerate(self.fallbacks))
        return ((where, self), *others)

    @model_validator(mode="after")
    def _are_told_apart(self) -> TierSettings:
        names = [one.provider for _, one in self.named("")]
        if len(set(names)) != len(names):
            raise ValueError("fallbacks: each provider of a tier needs a name of its own")
        return self


class TiersSettings(Settings):
    """Both sizes."""

    small: TierSettings
    large: TierSettings


class BudgetSettings(Settings):
    """Budgets where the caller names none, and at most."""

    default_ms: int = Field(default=8_000, ge=1)
    max_ms: int = Field(default=120_000, ge=1)


class CloudSettings(Settings):
    """All of the proxy's settings."""

    server: ServerSettings = ServerSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    service_secret_file: str = ""
    service_secret_env: str = "TANDEM_SERVICE_SECRET"  # noqa: S105 - a variable's name
    pii: Rule = Rule.REDACT
    pii_entities: bool = False
    """Names, organizations and addresses too, by rule; some are missed and some are none."""
    pii_tenants: dict[str, Rule] = Field(default_factory=dict)
    """Rules of single tenants, by name, before `pii`."""
    budget: BudgetSettings = BudgetSettings()
    callers_file: str = ""
    """Who may call without the router: keys, issuers, roles; empty: nobody."""
    replicas: int = Field(default=1, ge=1)
    """How many of these processes share the limits; more than one needs Redis."""
    limits: LimitsSettings = LimitsSettings()
    prices: tuple[PriceSettings, ...] = ()
    tiers: TiersSettings


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
