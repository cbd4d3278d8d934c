"""Tokens of an identity provider, and all that is wrong with others."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from services.common.auth import tokens, watch
from services.common.auth.config import Issuer
from services.common.auth.jwks import MAX_KEYS, parse_keys
from services.common.auth.tokens import TokenVerifier
from services.common.errors import ConfigInvalid, Unauthenticated
from tests.fakes.issuer import AUDIENCE, ISSUER, FakeIssuer


@pytest.fixture(scope="module")
def fake() -> FakeIssuer:
    return FakeIssuer()


def settings(file: Path | str, **changes: Any) -> Issuer:
    base = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_file": str(file), "leeway_s": 5}
    return Issuer.model_validate({**base, **changes})


def verifier(fake: FakeIssuer, folder: Path, **changes: Any) -> TokenVerifier:
    file = folder / "jwks.json"
    fake.write(file)
    return TokenVerifier([settings(file, **changes)])


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_good_token(fake: FakeIssuer, tmp_path: Path, algorithm: str) -> None:
    found = verifier(fake, tmp_path).verify(fake.token(algorithm))
    assert (found.tenant, found.roles) == ("acme", frozenset({"caller"}))
    assert found.key.startswith("jwt-")
    assert "jane" not in repr(found)


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": int(time.time()) - 60},
        {"exp": None},
        {"exp": "never"},
        # Far enough that the whole suite may run before it.
        {"nbf": int(time.time()) + 86_400},
        {"aud": "another"},
        {"aud": None},
        {"iss": "https://evil.example.com/"},
        {"iss": None},
        {"sub": None},
        {"sub": ""},
        {"tenant": None},
        {"tenant": 7},
        {"tenant": "x" * 200},
        {"kid": "unknown"},
        # The key of another algorithm.
        {"kid": "ES256-1"},
    ],
)
def test_bad_tokens(fake: FakeIssuer, tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(Unauthenticated):
        verifier(fake, tmp_path).verify(fake.token(**changes))


def test_the_leeway(fake: FakeIssuer, tmp_path: Path) -> None:
    verifier(fake, tmp_path).verify(fake.token(exp=int(time.time()) - 3))


def test_forged_tokens(fake: FakeIssuer, tmp_path: Path) -> None:
    one = verifier(fake, tmp_path)
    header, payload, signature = fake.token().split(".")

    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = jwt.decode(fake.token(), options={"verify_signature": False})
    public = json.dumps(fake.jwks("RS256")["keys"][0]).encode()
    symmetric = f"{part({'alg': 'HS256', 'kid': 'RS256-1'})}.{payload}"
    mac = hmac.new(public, symmetric.encode(), hashlib.sha256).digest()
    forged = [
        f"{header}.{part({**claims, 'tenant': 'other'})}.{signature}",
        f"{part({'alg': 'none', 'kid': 'RS256-1'})}.{payload}.",
        # The public key as the secret of a symmetric algorithm.
        f"{symmetric}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}",
        FakeIssuer().token(),
        f"{header}.{payload}.",
        "..",
        "a.b.c",
        f"{part({'alg': 'RS256', 'kid': ['RS256-1']})}.{payload}.{signature}",
        "x" * 10_000 + "." + payload + "." + signature,
    ]
    for token in forged:
        with pytest.raises(Unauthenticated):
            one.verify(token)


def test_only_allowed_algorithms(fake: FakeIssuer, tmp_path: Path) -> None:
    one = verifier(fake, tmp_path, algorithms=["ES256"])
    one.verify(fake.token("ES256"))
    with pytest.raises(Unauthenticated):
        one.verify(fake.token("RS256"))


def test_roles_and_tenant_by_setting(fake: FakeIssuer, tmp_path: Path) -> None:
    one = verifier(fake, tmp_path, tenant="fixed", roles_claim="groups")
    found = one.verify(fake.token(tenant=None, groups=["admin", 7]))
    assert (found.tenant, found.roles) == ("fixed", frozenset({"admin"}))


def test_new_keys_in_the_file_count(
    fake: FakeIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "CHECK_S", 0.0)
    one, other = verifier(fake, tmp_path), FakeIssuer()
    with pytest.raises(Unauthenticated):
        one.verify(other.token())
    other.write(tmp_path / "jwks.json")
    one.verify(other.token())
    with pytest.raises(Unauthenticated):
        one.verify(fake.token())


def test_a_lone_key_needs_no_id(fake: FakeIssuer) -> None:
    entry = fake.jwks("RS256")["keys"][0]
    del entry["kid"]
    keys = parse_keys(json.dumps({"keys": [entry]}).encode(), settings("x"))
    assert list(keys) == [""]


def test_unusable_keys_are_passed_over(fake: FakeIssuer) -> None:
    good = fake.jwks("ES256")["keys"][0]
    oct_key = {"kty": "oct", "k": "c2VjcmV0", "kid": "s"}
    entries = [oct_key, {**good, "use": "enc", "kid": "e"}, {"kty": "?"}, 7, good]
    keys = parse_keys(json.dumps({"keys": entries}).encode(), settings("x"))
    assert keys["ES256-1"].algorithm_name == "ES256"
    assert {"s", "e"} & set(keys) == set()
    many = [{**good, "kid": str(n)} for n in range(MAX_KEYS * 2)]
    assert len(parse_keys(json.dumps({"keys": many}).encode(), settings("x"))) == MAX_KEYS


def test_short_rsa_keys_are_refused() -> None:
    short = FakeIssuer(rsa_bits=1_024)
    with pytest.raises(ConfigInvalid, match="no key"):
        parse_keys(json.dumps(short.jwks("RS256")).encode(), settings("x"))


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"keys": 7}', b'{"keys": []}', b"[" * 9_999])
def test_what_is_no_jwks(raw: bytes) -> None:
    with pytest.raises(ConfigInvalid):
        parse_keys(raw, settings("x"))


def test_without_cryptography_issuers_are_refused_at_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens, "has_crypto", False)
    TokenVerifier([])
    with pytest.raises(ConfigInvalid, match="cryptography"):
        TokenVerifier([settings("x")])
