"""Who holds how much of a lane's KV cache, in tokens."""

from __future__ import annotations


class KvLedger:
    """Reservations against a fixed number of positions.

    A sequence reserves all it may need when it starts, so that a running answer
    never runs out of cache and none has to be pre-empted.
    """

    def __init__(self, capacity_tokens: int) -> None:
        self.capacity_tokens = capacity_tokens
        self._held: dict[int, int] = {}
        self._used = 0

    @property
    def used_tokens(self) -> int:
        """Positions reserved now."""
        return self._used

    def fits(self, tokens: int) -> bool:
        """True where `tokens` more can be reserved now."""
        return self._used + tokens <= self.capacity_tokens

    def reserve(self, holder: int, tokens: int) -> None:
        """Keeps `tokens` for a sequence; RuntimeError where they do not fit."""
        if holder in self._held or not self.fits(tokens):
            raise RuntimeError(f"KV reservation of {tokens} tokens for {holder} is a bug")
        self._held[holder] = tokens
        self._used += tokens

    def release(self, holder: int) -> None:
        """Gives back what the sequence holds; nothing where it holds nothing."""
        self._used -= self._held.pop(holder, 0)
