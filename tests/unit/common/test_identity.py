"""Service token and tenant claim."""

from __future__ import annotations

import time

import jwt
import pytest

from services.common.errors import ConfigInvalid, Unauthenticated
from services.common.identity import (
    TenantClaim,
    check_claim,
    check_secret,
    check_service_token,
    service_token,
    sign_claim,
)

SECRET = "s" * 40


def test_a_claim_is_for_its_tenant() -> None:
    assert check_claim(SECRET, sign_claim(SECRET, "acme", time.time())) == TenantClaim("acme")
    claim = sign_claim(SECRET, "acme", time.time(), "ci")
    assert check_claim(SECRET, claim) == TenantClaim("acme", "ci")


@pytest.mark.parametrize(
    "claim",
    [
        "",
        "nonsense",
        sign_claim("x" * 40, "acme", time.time()),
        sign_claim(SECRET, "acme", time.time() - 3_600),
        jwt.encode({"sub": "acme", "aud": "other", "exp": 9e9}, SECRET),
        jwt.encode({"sub": "acme", "aud": "tandem.cloud"}, SECRET),
        jwt.encode({"sub": "", "aud": "tandem.cloud", "exp": 9e9}, SECRET),
        jwt.encode({"sub": "a", "aud": "tandem.cloud", "exp": 9e9}, "", algorithm="none"),
    ],
)
def test_other_claims_are_refused(claim: str) -> None:
    with pytest.raises(Unauthenticated):
        check_claim(SECRET, claim)


def test_service_tokens() -> None:
    check_service_token(SECRET, "router", f"Bearer {service_token(SECRET, 'router')}")
    for wrong in ("", "Bearer ", f"Bearer {service_token(SECRET, 'edge')}", "Bearer é"):
        with pytest.raises(Unauthenticated):
            check_service_token(SECRET, "router", wrong)


def test_short_secrets_are_refused() -> None:
    with pytest.raises(ConfigInvalid, match="32"):
        check_secret("short", "cloud.secret_file")
