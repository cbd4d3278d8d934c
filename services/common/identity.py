"""Credentials between our own services: a service token and a signed tenant claim.

The router proves that it is the router with a shared token, and says for whom it
calls with a short-lived JWT (HS256, algorithm fixed) signed with the same secret.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass
from pathlib import Path

import jwt

from services.common.errors import ConfigInvalid, Unauthenticated

CLAIM_KEY = "x-tenant-claim"
CLAIM_TTL_S = 60
_ALGORITHM = "HS256"
_AUDIENCE = "tandem.cloud"
_MIN_SECRET_CHARS = 32


def read_secret(file: str, env: str, setting: str) -> str:
    """Reads a secret from a mounted file, else from the environment; empty if neither has it.

    Raises:
        ConfigInvalid: The file is named and cannot be read.
    """
    if file:
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as exc:
            raise ConfigInvalid(f"{setting}: {file} cannot be read") from exc
    return os.environ.get(env, "").strip() if env else ""


def check_secret(secret: str, setting: str) -> str:
    """Refuses a service secret that could be guessed.

    Raises:
        ConfigInvalid: Shorter than 32 characters.
    """
    if len(secret) < _MIN_SECRET_CHARS:
        raise ConfigInvalid(f"{setting}: needs a secret of at least {_MIN_SECRET_CHARS} characters")
    return secret


def service_token(secret: str, service: str) -> str:
    """The bearer token by which `service` shows itself; derived, so that the secret stays home."""
    return hmac.new(secret.encode(), f"service:{service}".encode(), hashlib.sha256).hexdigest()


def check_service_token(secret: str, service: str, authorization: str) -> None:
    """Raises Unauthenticated unless `authorization` is `Bearer <service_token>`."""
    expected = f"Bearer {service_token(secret, service)}"
    if not hmac.compare_digest(expected.encode(), authorization.encode()):
        raise Unauthenticated


@dataclass(frozen=True, slots=True)
class TenantClaim:
    """For whom the router calls; `key` is the caller's key id, for limits per key, or empty."""

    tenant: str
    key: str = ""


def sign_claim(secret: str, tenant: str, now_s: float, key: str = "") -> str:
    """A claim that this call is for `tenant`, good for a minute. `now_s` is Unix time."""
    payload = {
        "sub": tenant,
        "key": key,
        "aud": _AUDIENCE,
        "iat": int(now_s),
        "exp": int(now_s) + CLAIM_TTL_S,
    }
    return jwt.encode(payload, secret, algorithm=_ALGORITHM)


def check_claim(secret: str, claim: str) -> TenantClaim:
    """What a valid claim says.

    Raises:
        Unauthenticated: Missing, forged, expired or for another audience.
    """
    try:
        payload = jwt.decode(
            claim,
            secret,
            algorithms=[_ALGORITHM],
            audience=_AUDIENCE,
            leeway=5,
            options={"require": ["sub", "exp", "aud"]},
        )
    except jwt.InvalidTokenError as exc:
        raise Unauthenticated from exc
    tenant, key = payload["sub"], payload.get("key", "")
    if not isinstance(tenant, str) or not tenant or not isinstance(key, str):
        raise Unauthenticated
    return TenantClaim(tenant, key)
