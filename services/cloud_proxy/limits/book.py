"""Which limits a caller falls under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.cloud_proxy.policy.limits import Limits
from services.common.rpc.call import Principal

TENANT_SCOPE = "tenant"
_NONE = Limits()


@dataclass(frozen=True, slots=True)
class LimitBook:
    """Limits of tenants and of keys: those named for one, else the ones for each.

    Attributes:
        tenant: For each tenant that is not in `tenants`.
        key: For each key that is not in `keys`.
    """

    tenant: Limits = _NONE
    key: Limits = _NONE
    tenants: Mapping[str, Limits] = field(default_factory=dict)
    keys: Mapping[str, Limits] = field(default_factory=dict)

    def of(self, principal: Principal) -> dict[str, Limits]:
        """Limits by scope; empty where nothing limits this caller."""
        scopes = {TENANT_SCOPE: self.tenants.get(principal.tenant, self.tenant)}
        if principal.key:
            scopes[f"key:{principal.key}"] = self.keys.get(principal.key, self.key)
        return {scope: limits for scope, limits in scopes.items() if limits != _NONE}

    def has_budget(self) -> bool:
        """Whether money limits anyone, so that every model needs a price."""
        every = (self.tenant, self.key, *self.tenants.values(), *self.keys.values())
        return any(limits.micro_usd_per_day is not None for limits in every)
