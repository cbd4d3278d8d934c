"""Tenants: who may call, with which key, and what is granted to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from services.common.auth.callers import Authenticator
from services.common.auth.config import TENANT_NAME, Callers
from services.common.auth.watch import WatchedFile
from services.common.deadline import BudgetLimits
from services.common.errors import ConfigInvalid, Unauthenticated
from services.common.rpc.call import Principal
from services.common.settings import Settings, load_settings
from services.common.vocabulary import StreamMode, Target

ENV_PREFIX = "TANDEM_TENANTS"
_MODELS = (Target.EDGE, Target.CLOUD_SMALL, Target.CLOUD_LARGE)


class Tenant(Settings):
    """What one tenant may do."""

    name: str = Field(pattern=TENANT_NAME)
    pii: Literal["pin", "redact", "allow"] = "pin"
    """pin: private requests stay on the edge. redact and allow: they may go to the cloud,
    whose proxy has a rule of its own (`pii`, `pii_tenants`) and as shipped redacts for both."""
    targets: tuple[Target, ...] = _MODELS
    default_deadline_ms: int = Field(default=8_000, ge=1)
    max_deadline_ms: int = Field(default=120_000, ge=1)
    default_ttft_ms: int = Field(default=800, ge=1)
    default_channel: str = "api"
    max_calls_per_s: float | None = Field(default=None, gt=0)
    max_concurrent_calls: int | None = Field(default=None, ge=1)
    """Of each router process; beyond them calls are refused with a time to wait."""
    daily_ceiling_usd: float | None = Field(default=None, gt=0)
    """From the policy's share of it on no large cloud model answers, and beyond it none."""
    samples: bool = False
    """Whether corrected answers may be kept, with personal data replaced."""
    stream_mode: StreamMode | None = None
    """Stricter than the policy's, or absent."""

    @field_validator("targets")
    @classmethod
    def _some_model(cls, value: tuple[Target, ...]) -> tuple[Target, ...]:
        if not value or not set(value) <= set(_MODELS):
            raise ValueError("must name at least one of EDGE, CLOUD_SMALL, CLOUD_LARGE")
        return value

    @property
    def limits(self) -> BudgetLimits:
        """Default and longest budget."""
        return BudgetLimits(self.default_deadline_ms, self.max_deadline_ms)


class Tenants(Callers):
    """The tenants file: tenants, and the keys and issuers by which they call."""

    tenants: tuple[Tenant, ...]
    anonymous: str = ""
    """Tenant of calls without a credential; empty: such calls are refused."""

    @model_validator(mode="after")
    def _known_and_unique(self) -> Tenants:
        names = [tenant.name for tenant in self.tenants]
        if len(set(names)) != len(names):
            raise ValueError("tenants: names must differ")
        if self.anonymous and self.anonymous not in names:
            raise ValueError("anonymous: must name one of the tenants")
        if not {key.tenant for key in self.keys} <= set(names):
            raise ValueError("keys: tenant: must name one of the tenants")
        if not {issuer.tenant for issuer in self.issuers} - {""} <= set(names):
            raise ValueError("issuers: tenant: must name one of the tenants")
        return self

    def by_name(self) -> dict[str, Tenant]:
        """Tenants by name."""
        return {tenant.name: tenant for tenant in self.tenants}


class RouterAdmission:
    """Finds the tenant of a call by its key or token. The file may change while serving."""

    def __init__(self, file: WatchedFile[Tenants]) -> None:
        self._authenticator = Authenticator(file)
        self._read = self._authenticator.callers
        self._by_name = self._read.by_name()

    def tenant(self, name: str) -> Tenant:
        """The tenant of an authenticated call.

        Raises:
            Unauthenticated: No such tenant, or no more.
        """
        if self._authenticator.callers is not self._read:
            self._read = self._authenticator.callers
            self._by_name = self._read.by_name()
        found = self._by_name.get(name)
        if found is None:
            raise Unauthenticated
        return found

    def authenticate(self, method: str, metadata: Mapping[str, str]) -> Principal:
        """See `Admission`."""
        principal = self._authenticator.authenticate(method, metadata, _anonymous)
        # A token may name a tenant that we do not have.
        self.tenant(principal.tenant)
        return principal

    def limits(self, principal: Principal) -> BudgetLimits:
        """See `Admission`."""
        return self.tenant(principal.tenant).limits

    async def start(self) -> None:
        """Fetches the keys of issuers."""
        await self._authenticator.start()

    async def stop(self) -> None:
        """Ends what `start` began."""
        await self._authenticator.stop()


def watch_tenants(path: Path, *, loopback: bool) -> WatchedFile[Tenants]:
    """The tenants file, read anew when it changes.

    Raises:
        ConfigInvalid: It is wrong, or lets anyone in on an address other than loopback.
    """

    def parse(path: Path) -> Tenants:
        tenants = load_settings(Tenants, path, ENV_PREFIX)
        if tenants.anonymous and not loopback:
            raise ConfigInvalid("anonymous: permitted only while server.listen is loopback")
        return tenants

    return WatchedFile(path, parse)


def _anonymous(tenants: Tenants) -> str:
    return tenants.anonymous
