"""A file of callers, and credentials that are good or bad for it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import yaml

from services.common.auth.keys import hash_key, make_key
from tests.fakes.issuer import AUDIENCE, ISSUER, FakeIssuer

GOOD, REVOKED, OTHER = make_key("good"), make_key("revoked"), make_key("other")
READER = make_key("reader")


def bearer(credential: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {credential}"),)


def callers(folder: Path) -> dict[str, Any]:
    keys = [
        {"id": id_, "tenant": tenant, "hashes": [hash_key(key)], "roles": [role]}
        for id_, tenant, key, role in (
            ("good", "acme", GOOD, "caller"),
            ("revoked", "acme", REVOKED, "caller"),
            ("other", "other", OTHER, "caller"),
            ("reader", "acme", READER, "reader"),
        )
    ]
    roles = {"caller": ["*"], "reader": ["/tandem.router.v1.RouterService/GetResult"]}
    data: dict[str, Any] = {"keys": keys, "roles": roles}
    if (folder / "jwks.json").exists():
        issuer = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_file": str(folder / "jwks.json")}
        data["issuers"] = [issuer]
    return data


def write(folder: Path, data: dict[str, Any]) -> Path:
    partial, file = folder / "callers.partial", folder / "callers.yaml"
    partial.write_text(yaml.safe_dump(data))
    partial.replace(file)
    return file


def revoke(folder: Path, id_: str) -> None:
    data = yaml.safe_load((folder / "callers.yaml").read_text())
    data["keys"] = [key for key in data["keys"] if key["id"] != id_]
    write(folder, data)


def bad_metadata() -> dict[str, tuple[tuple[str, str], ...]]:
    return {
        "no key": (),
        "wrong key": bearer(make_key("good")),
        "unknown key": bearer(make_key("nobody")),
        "revoked key": bearer(REVOKED),
        "no scheme": (("authorization", GOOD),),
        "other scheme": (("authorization", f"Basic {GOOD}"),),
    }


def bad_tokens(fake: FakeIssuer) -> dict[str, tuple[tuple[str, str], ...]]:
    return {
        "expired token": bearer(fake.token(exp=int(time.time()) - 600)),
        "wrong audience": bearer(fake.token(aud="another")),
        "wrong issuer": bearer(fake.token(iss="another")),
        "forged token": bearer(FakeIssuer().token()),
    }
