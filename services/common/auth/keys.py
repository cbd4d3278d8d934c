"""API keys: `<id>.<secret>`, stored as salted hashes.

A key's secret is 256 random bits of ours, so nobody can try them all, and a slow hash
(scrypt) would protect nothing: it would only cost each call tens of milliseconds of this
process, and give strangers a way to spend them. The salt keeps equal keys from showing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

SCHEME = "hmac-sha256"
# The old and the new one while a key is rotated.
MAX_HASHES = 2
_HASH = re.compile(r"hmac-sha256\$([0-9a-f]{32})\$([0-9a-f]{64})")
_MAX_KEY_CHARS = 256
KEY_ID = r"^[a-z0-9][a-z0-9_-]{0,62}$"


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """Who shows a key.

    Attributes:
        hashes: One, or two while the key is rotated.
    """

    id: str
    tenant: str
    roles: frozenset[str]
    hashes: tuple[str, ...]


def make_key(id_: str) -> str:
    """A new key; it is shown once and kept nowhere."""
    return f"{id_}.{secrets.token_urlsafe(32)}"


def hash_key(key: str, salt: bytes | None = None) -> str:
    """`hmac-sha256$<salt>$<hash>`, as configuration holds it; a random salt by default."""
    salt = secrets.token_bytes(16) if salt is None else salt
    digest = hmac.new(salt, key.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
    return f"{SCHEME}${salt.hex()}${digest}"


def is_hash(text: str) -> bool:
    """Whether `text` has the form that `hash_key` writes."""
    return _HASH.fullmatch(text) is not None


class KeyRing:
    """Finds the owner of a key.

    The same work is done for every key, right, wrong, unknown or malformed: one look by
    id, then two hashes and two comparisons in constant time. Where an id is unknown, or
    has one hash, a decoy that nothing matches takes the place.
    """

    def __init__(self, owners: Iterable[KeyOwner]) -> None:
        self._owners = {owner.id: owner for owner in owners}
        self._decoy = hash_key(secrets.token_urlsafe(32))
        self._nobody = KeyOwner("", "", frozenset(), ())

    def find(self, key: str) -> KeyOwner | None:
        """The owner, or None."""
        shown = key[:_MAX_KEY_CHARS]
        owner = self._owners.get(shown.partition(".")[0], self._nobody)
        hashes = (*owner.hashes, *[self._decoy] * MAX_HASHES)[:MAX_HASHES]
        matches = [_matches(shown, stored) for stored in hashes]
        return owner if any(matches) and len(key) <= _MAX_KEY_CHARS else None


def _matches(key: str, stored: str) -> bool:
    salt = bytes.fromhex(stored.split("$")[1])
    return hmac.compare_digest(hash_key(key, salt), stored)
