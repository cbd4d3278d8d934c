"""Waiting sequences of a lane: first come first served in a tenant, round robin between them."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator

from services.edge_worker.scheduler.sequence import Sequence


class TenantQueue:
    """A queue in which a tenant with a thousand requests delays another by one.

    A tenant without waiting sequences takes no memory.
    """

    def __init__(self) -> None:
        self._tenants: OrderedDict[str, deque[Sequence]] = OrderedDict()
        self._count = 0
        self._prompt_tokens = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Sequence]:
        for waiting in self._tenants.values():
            yield from waiting

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens of all that wait."""
        return self._prompt_tokens

    def push(self, sequence: Sequence) -> None:
        """Puts it last among its tenant's; a new tenant comes last among tenants."""
        self._tenants.setdefault(sequence.spec.tenant, deque()).append(sequence)
        self._count += 1
        self._prompt_tokens += sequence.spec.prompt_tokens

    def head(self) -> Sequence | None:
        """The one whose turn it is."""
        for waiting in self._tenants.values():
            return waiting[0]
        return None

    def pop(self) -> Sequence:
        """Takes the head; its tenant goes to the end of the round."""
        tenant = next(iter(self._tenants))
        sequence = self._tenants[tenant].popleft()
        self._tenants.move_to_end(tenant)
        self._forget(sequence)
        return sequence

    def remove(self, sequence: Sequence) -> None:
        """Takes out one that waits; the others keep their order."""
        self._tenants[sequence.spec.tenant].remove(sequence)
        self._forget(sequence)

    def _forget(self, sequence: Sequence) -> None:
        self._count -= 1
        self._prompt_tokens -= sequence.spec.prompt_tokens
        if not self._tenants[sequence.spec.tenant]:
            del self._tenants[sequence.spec.tenant]
