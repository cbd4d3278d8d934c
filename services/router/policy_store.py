"""The policy in force, with its version: a hash of its content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from services.common.errors import ConfigInvalid
from services.common.settings import read_yaml, validate
from services.router.policy.config import Policy


@dataclass(frozen=True, slots=True)
class VersionedPolicy:
    """A policy and the hash that decisions carry."""

    policy: Policy
    version: str


def load_policy(path: Path) -> VersionedPolicy:
    """Reads and checks a policy file.

    Raises:
        ConfigInvalid: Unreadable, or a value breaks its rule.
    """
    policy = validate(Policy, read_yaml(path), str(path))
    if policy.default_task not in policy.capabilities:
        raise ConfigInvalid(f"{path}: default_task: must be one of the capabilities")
    digest = hashlib.sha256(policy.model_dump_json().encode()).hexdigest()[:12]
    return VersionedPolicy(policy, digest)
