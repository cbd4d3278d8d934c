"""The file of callers: keys, issuers of tokens, roles."""

from __future__ import annotations

import ipaddress
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from services.common.auth.keys import KEY_ID, MAX_HASHES, KeyOwner, is_hash
from services.common.settings import Settings

TENANT_NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
CALLER = "caller"


class ApiKey(Settings):
    """One API key; made by `tandem keys make`."""

    id: str = Field(pattern=KEY_ID)
    """The part of the key before its dot; names it in logs and limits."""
    tenant: str = Field(pattern=TENANT_NAME)
    hashes: tuple[str, ...] = Field(min_length=1, max_length=MAX_HASHES)
    """`hmac-sha256$<salt>$<hash>`; two while the key is rotated."""
    roles: tuple[str, ...] = (CALLER,)

    @field_validator("hashes")
    @classmethod
    def _are_hashes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(is_hash(item) for item in value):
            raise ValueError("must be hmac-sha256$<32 hex digits>$<64 hex digits>")
        return value

    def owner(self) -> KeyOwner:
        """As the key ring takes it."""
        return KeyOwner(self.id, self.tenant, frozenset(self.roles), self.hashes)


class Issuer(Settings):
    """An identity provider whose tokens (JWT) are taken."""

    issuer: str = Field(min_length=1)
    """The claim `iss`, exactly."""
    audience: str = Field(min_length=1)
    """Must be in the claim `aud`."""
    jwks_file: str = ""
    """A mounted file with the public keys, read anew when it changes."""
    jwks_url: str = ""
    """Else where they are fetched; https, or loopback."""
    ca_file: str = ""
    """More trusted certificates for `jwks_url` (PEM)."""
    algorithms: tuple[Literal["RS256", "ES256"], ...] = ("RS256", "ES256")
    leeway_s: int = Field(default=30, ge=0, le=300)
    """How far clocks may differ."""
    tenant: str = ""
    """Tenant of all its tokens; empty: the claim `tenant_claim` names it."""
    tenant_claim: str = "tenant"
    roles_claim: str = ""
    """Claim with a list of roles; empty: all have `roles`."""
    roles: tuple[str, ...] = (CALLER,)
    refresh_s: int = Field(default=300, ge=10)
    """How often `jwks_url` is fetched."""
    max_age_s: int = Field(default=3_600, ge=10)
    """Keys that could not be fetched anew for so long are trusted no more."""
    timeout_ms: int = Field(default=3_000, ge=1, le=30_000)
    """Longest fetch."""

    @model_validator(mode="after")
    def _has_keys(self) -> Issuer:
        if bool(self.jwks_file) == bool(self.jwks_url):
            raise ValueError("needs jwks_file or jwks_url, one of them")
        if not self.algorithms:
            raise ValueError("algorithms: needs at least one")
        parts = urlsplit(self.jwks_url)
        if self.jwks_url and parts.scheme != "https" and not is_loopback(parts):
            raise ValueError("jwks_url: must be https")
        return self


class Callers(Settings):
    """Who may call, and which methods."""

    keys: tuple[ApiKey, ...] = ()
    issuers: tuple[Issuer, ...] = ()
    roles: dict[str, tuple[str, ...]] = Field(default={CALLER: ("*",)})
    """Methods of each role: `*`, `/package.Service/*` or `/package.Service/Method`."""

    @model_validator(mode="after")
    def _fits_together(self) -> Callers:
        ids = [key.id for key in self.keys]
        if len(set(ids)) != len(ids):
            raise ValueError("keys: ids must differ")
        names = [issuer.issuer for issuer in self.issuers]
        if len(set(names)) != len(names):
            raise ValueError("issuers: each issuer only once")
        used = {role for key in self.keys for role in key.roles}
        used |= {role for issuer in self.issuers for role in issuer.roles}
        if not used <= set(self.roles):
            raise ValueError(f"roles: must be among {', '.join(sorted(self.roles))}")
        for methods in self.roles.values():
            if not all(method == "*" or method.startswith("/") for method in methods):
                raise ValueError("roles: methods are *, /package.Service/* or a full name")
        return self

    def permits(self, roles: frozenset[str], method: str) -> bool:
        """Whether one of the roles has `method`, such as `/package.Service/Method`."""
        service = method.rpartition("/")[0] + "/*"
        return any({"*", service, method} & set(self.roles.get(role, ())) for role in roles)


def is_loopback(parts: object) -> bool:
    """Whether a split http URL points to this host."""
    scheme, host = getattr(parts, "scheme", ""), getattr(parts, "hostname", "") or ""
    if scheme != "http":
        return False
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
