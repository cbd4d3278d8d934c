"""Settings of limits and prices, and the parts that they make."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from typing import Literal

from pydantic import ConfigDict, Field

from services.cloud_proxy.limits.book import LimitBook
from services.cloud_proxy.limits.fallback import FallbackStore
from services.cloud_proxy.limits.memory import MemoryStore
from services.cloud_proxy.limits.redis_store import RedisStore
from services.cloud_proxy.limits.store import LimitStore
from services.cloud_proxy.policy.cost import PricePeriod, Prices, PriceTable
from services.cloud_proxy.policy.limits import Limits
from services.common.errors import ConfigInvalid
from services.common.identity import read_secret
from services.common.settings import Settings


class LimitSettings(Settings):
    """Limits of one tenant or key; what is absent does not limit."""

    requests_per_min: int | None = Field(default=None, ge=0)
    tokens_per_min: int | None = Field(default=None, ge=0)
    """Prompt and answer together."""
    concurrent: int | None = Field(default=None, ge=0)
    usd_per_day: float | None = Field(default=None, ge=0, le=1e9)
    """Of a UTC day."""

    def limits(self) -> Limits:
        """As the policy takes them."""
        usd = self.usd_per_day
        return Limits(
            self.requests_per_min,
            self.tokens_per_min,
            self.concurrent,
            None if usd is None else round(usd * 1_000_000),
        )


class RedisSettings(Settings):
    """Where replicas share usage; without a URL it is kept in the process."""

    url_file: str = ""
    """A mounted file with redis://, rediss:// or unix://."""
    url_env: str = "TANDEM_REDIS_URL"
    """Else this variable."""
    timeout_ms: int = Field(default=200, ge=1, le=5_000)
    """Longest wait for a reply."""


class LimitsSettings(Settings):
    """Limits of all callers."""

    tenant: LimitSettings = LimitSettings()
    """Of each tenant that `tenants` does not name."""
    key: LimitSettings = LimitSettings()
    """Of each key that `keys` does not name, beside its tenant's."""
    tenants: dict[str, LimitSettings] = Field(default_factory=dict)
    keys: dict[str, LimitSettings] = Field(default_factory=dict)
    on_store_down: Literal["local", "refuse"] = "local"
    redis: RedisSettings = RedisSettings()

    def book(self) -> LimitBook:
        """Who falls under which limits."""
        return LimitBook(
            tenant=self.tenant.limits(),
            key=self.key.limits(),
            tenants={name: one.limits() for name, one in self.tenants.items()},
            keys={name: one.limits() for name, one in self.keys.items()},
        )


class PriceSettings(Settings):
    """Prices of a model from a day on; a later period takes their place."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=False)

    model: str = Field(min_length=1)
    valid_from: datetime.date = Field(alias="from")
    """First day, UTC."""
    input_usd_per_million: float = Field(ge=0)
    cached_input_usd_per_million: float | None = Field(default=None, ge=0)
    """None: the price of other input."""
    output_usd_per_million: float = Field(ge=0)

    def period(self) -> PricePeriod:
        """As the policy takes it."""
        cached = self.cached_input_usd_per_million
        return PricePeriod(
            self.valid_from,
            Prices(
                input_usd=self.input_usd_per_million,
                cached_input_usd=self.input_usd_per_million if cached is None else cached,
                output_usd=self.output_usd_per_million,
            ),
        )


def price_table(prices: Sequence[PriceSettings], model: str, *, needed: bool) -> PriceTable:
    """The prices of a model.

    Raises:
        ConfigInvalid: It has none today though money limits somebody; or two from one day.
    """
    periods = tuple(price.period() for price in prices if price.model == model)
    if len({period.start for period in periods}) != len(periods):
        raise ConfigInvalid(f"prices: {model}: each `from` only once")
    table = PriceTable(periods)
    if needed and table.find(time.time()) is None:
        raise ConfigInvalid(f"prices: {model}: needs a price of today, since usd_per_day is set")
    return table


def make_store(settings: LimitsSettings, replicas: int) -> LimitStore:
    """The store that the settings ask for.

    Raises:
        ConfigInvalid: Several replicas without Redis; a URL that is none.
    """
    redis = settings.redis
    url = read_secret(redis.url_file, redis.url_env, "limits.redis.url_file")
    if not url:
        if replicas > 1:
            raise ConfigInvalid(
                f"replicas: {replicas} would each grant the whole limit: "
                f"set limits.redis.url_file or {redis.url_env}"
            )
        return MemoryStore()
    try:
        primary = RedisStore(url, redis.timeout_ms)
    except ValueError as exc:
        # Its text may hold the password.
        raise ConfigInvalid("limits.redis: needs a redis://, rediss:// or unix:// URL") from exc
    local = MemoryStore() if settings.on_store_down == "local" else None
    return FallbackStore(primary, local)
