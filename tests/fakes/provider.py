"""A provider that answers from a list, without any network."""

from __future__ import annotations

from collections.abc import Sequence

from services.cloud_proxy.providers.base import Completion, Piece, Sink
from services.cloud_proxy.redaction.cleared import ClearedRequest
from services.common.errors import TandemError
from services.common.vocabulary import FinishReason

Turn = TandemError | Sequence[str | TandemError]


class FakeProvider:
    """Each call takes the next turn: an error, or pieces of text that may end in an error.

    Attributes:
        requests: What was sent.
        closed: Whether the pool was closed.
    """

    name = "fake"

    def __init__(self, *turns: Turn) -> None:
        self._turns = list(turns)
        self.requests: list[ClearedRequest] = []
        self.closed = False

    async def generate(
        self, request: ClearedRequest, sink: Sink, *, expires_at: float
    ) -> Completion:
        """See `Provider.generate`."""
        self.requests.append(request)
        turn = self._turns.pop(0)
        if isinstance(turn, TandemError):
            raise turn
        for piece in turn:
            if isinstance(piece, TandemError):
                raise piece
            await sink(Piece("fake-1", piece))
        return Completion("fake-1", FinishReason.STOP, (), None, None)

    async def warm(self) -> None:
        """See `Provider.warm`."""

    async def close(self) -> None:
        """See `Provider.close`."""
        self.closed = True
