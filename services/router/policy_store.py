"""The policy in force: loaded, versioned by its content, reloaded while serving.

A file is looked at by its identity (resolved path, inode, time, size) once in a while,
which also sees a mounted ConfigMap, whose files are symlinks that are swapped. A
new policy is checked whole and then put in place by one assignment; requests take
`current` once, so none sees two versions. A bad file leaves the old one in force
and shows in health, log and metric.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog
from opentelemetry import metrics

from services.common.confidence.thresholds import Thresholds
from services.common.errors import ConfigInvalid
from services.common.settings import read_yaml, validate
from services.common.telemetry import names
from services.router.policy.config import Policy

_log = structlog.get_logger()
_reloads = metrics.get_meter("tandem.router").create_counter(
    names.POLICY_RELOADS, description="Policy files seen, by whether they were taken"
)

_Identity = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class VersionedPolicy:
    """A policy and the hash that decisions carry."""

    policy: Policy
    version: str


def load_policy(path: Path, thresholds: Path | None = None) -> VersionedPolicy:
    """Reads and checks a policy file and, where there is one, its file of thresholds.

    Raises:
        ConfigInvalid: Unreadable, or a value breaks its rule.
    """
    policy = validate(Policy, read_yaml(path), str(path))
    if thresholds is not None:
        read = validate(Thresholds, read_yaml(thresholds), str(thresholds))
        policy = policy.model_copy(update={"thresholds": read})
    if policy.default_task not in policy.capabilities:
        raise ConfigInvalid(f"{path}: default_task: must be one of the capabilities")
    digest = hashlib.sha256(policy.model_dump_json().encode()).hexdigest()[:12]
    return VersionedPolicy(policy, digest)


class PolicyStore:
    """Holds the policy in force and follows its file.

    Args:
        path: The policy file.
        thresholds: The file of thresholds; None where the built-in ones hold.
        poll_ms: Time between two looks at it.
        on_state: Told False when a bad file is seen, True when a good one is in force again.

    Raises:
        ConfigInvalid: The first policy is bad; a router does not start without one.
    """

    def __init__(
        self,
        path: Path,
        poll_ms: int,
        on_state: Callable[[bool], None],
        thresholds: Path | None = None,
    ) -> None:
        self.current = load_policy(path, thresholds)
        self._path = path
        self._thresholds = thresholds
        self._poll_s = poll_ms / 1000.0
        self._on_state = on_state
        self._seen = self._identities()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to follow, on the running loop."""
        # A series that begins at one has no increase: the first refusal would alarm nobody.
        _reloads.add(0, {names.OUTCOME: "REFUSED"})
        self._task = asyncio.create_task(self._follow(), name="policy")

    async def stop(self) -> None:
        """Ends following."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._poll_s)
            identity = self._identities()
            if identity != self._seen:
                # Remembered before reading: a change while we read is seen at the next look.
                self._seen = identity
                await self._reload()

    def _identities(self) -> tuple[_Identity | None, ...]:
        files = (self._path, self._thresholds)
        return tuple(_identity(file) for file in files if file is not None)

    async def _reload(self) -> None:
        try:
            loaded = await asyncio.to_thread(load_policy, self._path, self._thresholds)
        except ConfigInvalid as error:
            _log.error("policy_refused", error=error.message, in_force=self.current.version)
            _reloads.add(1, {names.OUTCOME: "REFUSED"})
            self._on_state(False)
            return
        if loaded.version != self.current.version:
            _log.info("policy_loaded", version=loaded.version, before=self.current.version)
        self.current = loaded
        _reloads.add(1, {names.OUTCOME: "TAKEN"})
        self._on_state(True)


def _identity(path: Path) -> _Identity | None:
    """What changes when the file does; None while it is absent."""
    try:
        resolved = path.resolve(strict=True)
        stat = resolved.stat()
    except OSError:
        return None
    return str(resolved), stat.st_ino, stat.st_mtime_ns, stat.st_size
