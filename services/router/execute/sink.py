"""Where text goes while it is made."""

from __future__ import annotations

from typing import Protocol

from services.common.vocabulary import Reason, Target
from services.router.policy.plan import Plan


class Sink(Protocol):
    """What a caller sees of a running answer."""

    async def decided(self, plan: Plan) -> None:
        """The plan stands; called once, first."""

    async def chunk(self, text: str, target: Target, *, committed: bool) -> None:
        """A piece of text."""

    async def superseded(self, reason: Reason, target: Target) -> None:
        """All provisional text is withdrawn."""


class SilentSink:
    """For unary calls: nothing is seen before the end."""

    async def decided(self, plan: Plan) -> None:
        """See `Sink`."""

    async def chunk(self, text: str, target: Target, *, committed: bool) -> None:
        """See `Sink`."""

    async def superseded(self, reason: Reason, target: Target) -> None:
        """See `Sink`."""
