"""Tenants: who may call, with which key, and what is granted to them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator, model_validator

from services.common.deadline import BudgetLimits
from services.common.errors import Unauthenticated
from services.common.rpc.call import Principal
from services.common.settings import Settings
from services.common.vocabulary import StreamMode, Target

_MODELS = (Target.EDGE, Target.CLOUD_SMALL, Target.CLOUD_LARGE)


class Tenant(Settings):
    """What one tenant may do."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")
    key_sha256: tuple[str, ...] = ()
    """SHA-256 of each API key, in hex: keys are random, so no slow hash is needed."""
    pii: Literal["pin", "allow"] = "pin"
    """pin: private requests stay on the edge. (redact comes with the proxy's redactor.)"""
    targets: tuple[Target, ...] = _MODELS
    default_deadline_ms: int = Field(default=8_000, ge=1)
    max_deadline_ms: int = Field(default=120_000, ge=1)
    default_ttft_ms: int = Field(default=800, ge=1)
    default_channel: str = "api"
    stream_mode: StreamMode | None = None
    """Stricter than the policy's, or absent."""

    @field_validator("key_sha256")
    @classmethod
    def _hashes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for item in value:
            if len(item) != 64 or not all(c in "0123456789abcdef" for c in item):
                raise ValueError("must be SHA-256 hashes: 64 lower-case hex digits")
        return value

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


class Tenants(Settings):
    """The tenants file."""

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
        return self

    def by_name(self) -> dict[str, Tenant]:
        """Tenants by name."""
        return {tenant.name: tenant for tenant in self.tenants}


class RouterAdmission:
    """Finds the tenant of a call by its bearer key."""

    def __init__(self, tenants: Tenants) -> None:
        self._by_name = tenants.by_name()
        self._anonymous = tenants.anonymous
        self._keys = [(key, t.name) for t in tenants.tenants for key in t.key_sha256]

    def tenant(self, name: str) -> Tenant:
        """The tenant of an authenticated call."""
        return self._by_name[name]

    def authenticate(self, method: str, metadata: Mapping[str, str]) -> Principal:
        """See `Admission`. Every key is compared, so timing tells nothing about any."""
        authorization = metadata.get("authorization", "")
        if not authorization:
            if not self._anonymous:
                raise Unauthenticated
            return Principal(name="anonymous", tenant=self._anonymous)
        scheme, _, key = authorization.partition(" ")
        digest = hashlib.sha256(key.encode()).hexdigest()
        found = ""
        for known, name in self._keys:
            if hmac.compare_digest(known, digest):
                found = name
        if scheme.lower() != "bearer" or not found:
            raise Unauthenticated
        return Principal(name=found, tenant=found)

    def limits(self, principal: Principal) -> BudgetLimits:
        """See `Admission`."""
        return self._by_name[principal.tenant].limits
