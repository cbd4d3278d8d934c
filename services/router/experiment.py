"""A candidate policy beside the one in force: only recorded (dry run), or served to a share (A/B).

A dry run decides twice and answers once; an A/B test answers a share of the sessions by the
candidate. Both stand in the ledger: `candidate` is what it would have done, `arm` who answered.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from services.router.policy_store import PolicyStore, VersionedPolicy

Arm = Literal["", "A", "B"]
_BUCKETS = 1 << 32


@dataclass(frozen=True, slots=True)
class Chosen:
    """The policy of one request.

    Attributes:
        arm: A and B in an A/B test, else empty.
        candidate: Decides too, and is recorded; None outside a dry run.
    """

    policy: VersionedPolicy
    arm: Arm = ""
    candidate: VersionedPolicy | None = None


@dataclass(frozen=True, slots=True)
class Policies:
    """The policy in force and, where there is one, its candidate.

    Attributes:
        ab_share: Share of sessions that the candidate answers; 0: a dry run.
    """

    in_force: PolicyStore
    candidate: PolicyStore | None = None
    ab_share: float = 0.0

    @property
    def current(self) -> VersionedPolicy:
        """The policy in force."""
        return self.in_force.current

    def choose(self, tenant: str, unit: str) -> Chosen:
        """The policy for a request.

        Args:
            tenant: Whose it is.
            unit: What stays in one arm: the session, or a request that has none.
        """
        if self.candidate is None:
            return Chosen(self.current)
        if self.ab_share <= 0:
            return Chosen(self.current, candidate=self.candidate.current)
        if in_arm_b(tenant, unit, self.ab_share):
            return Chosen(self.candidate.current, "B")
        return Chosen(self.current, "A")

    def start(self) -> None:
        """Begins to follow the files."""
        for store in self._stores():
            store.start()

    async def stop(self) -> None:
        """Ends following."""
        for store in self._stores():
            await store.stop()

    def _stores(self) -> list[PolicyStore]:
        return [store for store in (self.in_force, self.candidate) if store is not None]


def in_arm_b(tenant: str, unit: str, share: float) -> bool:
    """Whether a unit falls into the share; always the same for the same unit."""
    digest = hashlib.sha256(f"{tenant}\0{unit}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < share * _BUCKETS
