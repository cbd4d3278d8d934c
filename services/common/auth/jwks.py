"""Public keys of an identity provider, from a file or from its URL.

They are looked up without waiting: a URL is fetched in the background, and an unknown key
id only hastens the next fetch, so that no caller can make us call out, or wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import jwt
import structlog

from services.common.auth.config import Issuer
from services.common.auth.watch import WatchedFile
from services.common.errors import ConfigInvalid

_log = structlog.get_logger()
MAX_BYTES = 256 * 1024
MAX_KEYS = 64
_MIN_RSA_BITS = 2_048
# Unknown key ids hasten a fetch, but not beyond this.
MIN_FETCH_S = 10.0
_CHUNK = 16 * 1024
Keys = Mapping[str, jwt.PyJWK]
"""By key id; a lone key without an id stands under the empty one."""


class KeySource(Protocol):
    """Where an issuer's keys come from."""

    def keys(self) -> Keys:
        """The keys in force; empty where there are none."""

    def missed(self) -> None:
        """Called when a token names a key that is not there."""

    async def start(self) -> None:
        """Begins to keep them fresh."""

    async def stop(self) -> None:
        """Ends that."""


class FileKeys:
    """A mounted file.

    Raises:
        ConfigInvalid: It cannot be read, or holds no key.
    """

    def __init__(self, issuer: Issuer) -> None:
        def parse(path: Path) -> Keys:
            try:
                raw = path.read_bytes()
            except OSError as exc:
                raise ConfigInvalid(f"{path}: cannot be read") from exc
            return parse_keys(raw, issuer)

        self._file = WatchedFile(Path(issuer.jwks_file), parse)

    def keys(self) -> Keys:
        """See `KeySource.keys`."""
        return self._file.get()

    def missed(self) -> None:
        """See `KeySource.missed`: the file is watched anyway."""

    async def start(self) -> None:
        """See `KeySource.start`."""

    async def stop(self) -> None:
        """See `KeySource.stop`."""


class UrlKeys:
    """A URL, fetched every `refresh_s`. While fetches fail, keys last for `max_age_s`."""

    def __init__(self, issuer: Issuer, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: Keys = {}
        self._fetched_at = float("-inf")
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def keys(self) -> Keys:
        """See `KeySource.keys`."""
        fresh = self._clock() - self._fetched_at <= self._issuer.max_age_s
        return self._keys if fresh else {}

    def missed(self) -> None:
        """See `KeySource.missed`."""
        self._wake.set()

    async def start(self) -> None:
        """Fetches once, then goes on in the background; a provider that is down stops nothing."""
        await self._fetch()
        self._task = asyncio.create_task(self._refresh(), name="jwks")

    async def stop(self) -> None:
        """See `KeySource.stop`."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(MIN_FETCH_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._issuer.refresh_s - MIN_FETCH_S)):
                    await self._wake.wait()
            self._wake.clear()
            await self._fetch()

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(self._issuer.timeout_ms / 1000.0):
                raw = await asyncio.to_thread(fetch, self._issuer)
            self._keys = parse_keys(raw, self._issuer)
            self._fetched_at = self._clock()
        except (OSError, TimeoutError, ValueError, ConfigInvalid) as exc:
            _log.error("jwks_fetch_failed", issuer=self._issuer.issuer, error=type(exc).__name__)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could lead to an address that nobody has allowed."""

    def redirect_request(self, *_: Any) -> None:
        return None


def fetch(issuer: Issuer) -> bytes:
    """The body behind `jwks_url`: no proxies, no redirects, bounded in time and size.

    Raises:
        OSError: It cannot be had, is too large, or drips.
    """
    context = ssl.create_default_context()
    if issuer.ca_file:
        context.load_verify_locations(issuer.ca_file)
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=context),
        _NoRedirects(),
    )
    timeout_s = issuer.timeout_ms / 1000.0
    end = time.monotonic() + timeout_s
    body = b""
    # The settings allow https, and http to this host, alone.
    with opener.open(issuer.jwks_url, timeout=timeout_s) as response:
        while chunk := response.read1(_CHUNK):
            body += chunk
            if len(body) > MAX_BYTES or time.monotonic() > end:
                raise OSError("too large or too slow")
    return body


def parse_keys(raw: bytes, issuer: Issuer) -> Keys:
    """The usable keys of a JWKS document; keys of other kinds and uses are passed over.

    Raises:
        ConfigInvalid: No JWKS, or no usable key in it.
    """
    try:
        entries = json.loads(raw[: MAX_BYTES + 1])["keys"]
        found = [key for entry in entries[:MAX_KEYS] if (key := _key(entry, issuer))]
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise ConfigInvalid(f"issuers: {issuer.issuer}: its keys are no JWKS") from exc
    if not found:
        raise ConfigInvalid(f"issuers: {issuer.issuer}: no key for {', '.join(issuer.algorithms)}")
    keys = {key.key_id: key for key in found if key.key_id}
    return keys if len(found) > 1 else {**keys, "": found[0]}


def _key(entry: Any, issuer: Issuer) -> jwt.PyJWK | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or "d" in entry:
        return None
    try:
        key = jwt.PyJWK(entry)
    except jwt.PyJWTError:
        return None
    if key.algorithm_name not in issuer.algorithms:
        return None
    small = key.key_type == "RSA" and key.key.key_size < _MIN_RSA_BITS
    return None if small else key
