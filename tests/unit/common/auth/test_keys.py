"""API keys: found, and refused by the same steps."""

from __future__ import annotations

import hmac
from typing import Any

import pytest

from services.common.auth import keys
from services.common.auth.keys import KeyOwner, KeyRing, hash_key, is_hash, make_key

KEY, OLD = make_key("ci"), make_key("ci")
ROTATING = make_key("two")


def ring() -> KeyRing:
    roles = frozenset({"caller"})
    return KeyRing(
        [
            KeyOwner("ci", "acme", roles, (hash_key(KEY),)),
            KeyOwner("two", "acme", roles, (hash_key(make_key("two")), hash_key(ROTATING))),
        ]
    )


def test_a_key_finds_its_owner_also_while_it_is_rotated() -> None:
    for key, id_ in ((KEY, "ci"), (ROTATING, "two")):
        owner = ring().find(key)
        assert owner is not None
        assert owner.id == id_


@pytest.mark.parametrize(
    "key", ["", ".", "ci", "ci.", OLD, KEY[:-1], KEY + "x", "nobody.secret", "é.é", KEY + "x" * 999]
)
def test_others_find_nobody(key: str) -> None:
    assert ring().find(key) is None


def test_the_same_steps_run_for_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    real: Any = hmac.compare_digest

    def hashed(key: str, salt: bytes | None = None) -> str:
        steps.append("hash")
        return hash_key(key, salt)

    def compared(one: str, other: str) -> bool:
        steps.append("compare")
        return bool(real(one, other))

    one = ring()
    monkeypatch.setattr(keys, "hash_key", hashed)
    monkeypatch.setattr(hmac, "compare_digest", compared)
    seen = set()
    for key in (KEY, ROTATING, OLD, "nobody.secret", "", "no dot", KEY + "x" * 999):
        steps.clear()
        one.find(key)
        seen.add(tuple(steps))
    assert seen == {("hash", "compare") * 2}


def test_hashes_are_salted_and_hold_no_key() -> None:
    first, second = hash_key(KEY), hash_key(KEY)
    assert first != second
    assert is_hash(first)
    assert KEY not in first
    assert not is_hash("sha256$aa$bb")
    assert len(KEY.partition(".")[2]) >= 43
