"""Tokens (JWT) of identity providers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jwt
from jwt.algorithms import has_crypto

from services.common.auth.config import Issuer
from services.common.auth.jwks import FileKeys, KeySource, UrlKeys
from services.common.errors import ConfigInvalid, Unauthenticated
from services.common.rpc.call import Principal

_MAX_TOKEN_CHARS = 8_192
_MAX_NAME_CHARS = 128
_REQUIRED = ("exp", "iss", "aud", "sub")


@dataclass(frozen=True, slots=True)
class _Trusted:
    issuer: Issuer
    source: KeySource


class TokenVerifier:
    """Checks tokens; the algorithm is allow-listed and must be the key's own.

    Raises:
        ConfigInvalid: Issuers are set and the package `cryptography` is missing, or an
            issuer's file is wrong.
    """

    def __init__(self, issuers: Iterable[Issuer]) -> None:
        issuers = tuple(issuers)
        if issuers and not has_crypto:
            raise ConfigInvalid("issuers: needs the Python package cryptography")
        self._trusted = {
            issuer.issuer: _Trusted(
                issuer, FileKeys(issuer) if issuer.jwks_file else UrlKeys(issuer)
            )
            for issuer in issuers
        }

    async def start(self) -> None:
        """Fetches keys, and keeps them fresh."""
        for trusted in self._trusted.values():
            await trusted.source.start()

    async def stop(self) -> None:
        """Ends that."""
        for trusted in self._trusted.values():
            await trusted.source.stop()

    def verify(self, token: str) -> Principal:
        """The caller that a token names.

        Raises:
            Unauthenticated: Whatever is wrong with it.
        """
        if len(token) > _MAX_TOKEN_CHARS:
            raise Unauthenticated
        try:
            trusted = self._issuer_of(token)
            claims = jwt.decode(
                token,
                key=_key(token, trusted),
                algorithms=list(trusted.issuer.algorithms),
                audience=trusted.issuer.audience,
                issuer=trusted.issuer.issuer,
                leeway=trusted.issuer.leeway_s,
                options={"require": list(_REQUIRED)},
            )
        except (jwt.PyJWTError, ValueError, RecursionError) as exc:
            raise Unauthenticated from exc
        return _principal(claims, trusted.issuer)

    def _issuer_of(self, token: str) -> _Trusted:
        """Only chooses whose keys to try; the signature then covers the claim."""
        unverified = jwt.decode(token, options={"verify_signature": False})
        name = unverified.get("iss")
        trusted = self._trusted.get(name) if isinstance(name, str) else None
        if trusted is None:
            raise Unauthenticated
        return trusted


def looks_like_token(credential: str) -> bool:
    """Whether it has a token's three parts; API keys have two."""
    return credential.count(".") == 2


def _key(token: str, trusted: _Trusted) -> jwt.PyJWK:
    header = jwt.get_unverified_header(token)
    kid = header.get("kid", "")
    key = trusted.source.keys().get(kid) if isinstance(kid, str) else None
    if key is None:
        trusted.source.missed()
        raise Unauthenticated
    if header.get("alg") != key.algorithm_name:
        raise Unauthenticated
    return key


def _principal(claims: dict[str, Any], issuer: Issuer) -> Principal:
    subject = _text(claims, "sub")
    tenant = issuer.tenant or _text(claims, issuer.tenant_claim)
    roles = frozenset(issuer.roles)
    if issuer.roles_claim:
        told = claims.get(issuer.roles_claim)
        roles = (
            frozenset(r for r in told if isinstance(r, str)) if isinstance(told, list) else roles
        )
    # A subject may be an e-mail address: limits and logs see a hash of it.
    digest = hashlib.sha256(f"{issuer.issuer}\n{subject}".encode("utf-8", "replace")).hexdigest()
    key = f"jwt-{digest[:16]}"
    return Principal(name=key, tenant=tenant, roles=roles, key=key)


def _text(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_NAME_CHARS:
        raise Unauthenticated
    return value
