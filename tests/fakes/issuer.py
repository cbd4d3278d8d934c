"""An identity provider: keys, their JWKS, and tokens. Needs the package `cryptography`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

NEEDS = "tokens need the package cryptography (pyjwt[crypto])"
ISSUER, AUDIENCE = "https://login.example.com/", "tandem"


class FakeIssuer:
    """Signs with one RSA and one EC key; skips the test, with a reason, where it cannot."""

    def __init__(self, rsa_bits: int = 2_048) -> None:
        asymmetric = "cryptography.hazmat.primitives.asymmetric"
        rsa: Any = pytest.importorskip(f"{asymmetric}.rsa", reason=NEEDS)
        ec: Any = pytest.importorskip(f"{asymmetric}.ec", reason=NEEDS)
        self.private: dict[str, Any] = {
            "RS256": rsa.generate_private_key(public_exponent=65_537, key_size=rsa_bits),
            "ES256": ec.generate_private_key(ec.SECP256R1()),
        }

    def jwks(self, *algorithms: str) -> dict[str, Any]:
        """The public keys of the algorithms, all by default; their ids are `<alg>-1`."""
        makers: dict[str, Any] = {
            "RS256": jwt.algorithms.RSAAlgorithm,
            "ES256": jwt.algorithms.ECAlgorithm,
        }
        return {
            "keys": [
                {
                    **makers[name].to_jwk(self.private[name].public_key(), as_dict=True),
                    "kid": f"{name}-1",
                    "use": "sig",
                }
                for name in algorithms or self.private
            ]
        }

    def write(self, file: Path, *algorithms: str) -> None:
        """The JWKS as a file, swapped in by a rename."""
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(self.jwks(*algorithms)))
        partial.replace(file)

    def token(self, algorithm: str = "RS256", kid: str | None = None, **changes: Any) -> str:
        """A good token of tenant acme but for `changes`; a claim set to None is left out."""
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "jane@example.com",
            "iat": now,
            "exp": now + 300,
            "tenant": "acme",
            **changes,
        }
        return jwt.encode(
            {name: value for name, value in claims.items() if value is not None},
            self.private[algorithm],
            algorithm=algorithm,
            headers={"kid": kid or f"{algorithm}-1"},
        )
