"""How many prompt tokens go into one call, so that a call takes about a given time."""

from __future__ import annotations

# A pass over the weights costs about as much as a few tokens: smaller is waste.
MIN_CHUNK_TOKENS = 8
_FASTEST_GROWTH = 2.0
_FASTEST_CUT = 0.25


class ChunkPace:
    """Follows the measured time of a lane's chunks.

    Attention makes a token dearer the more prompt lies before it (on a CPU some
    five times at 2,000 tokens), so a fixed number of tokens would let a long prompt
    hold up the other lane longer and longer.

    Args:
        most_tokens: Upper bound of a chunk.
        target_ms: Time that a chunk should take; 0: always `most_tokens`.
    """

    def __init__(self, most_tokens: int, target_ms: float) -> None:
        self._most = most_tokens
        self._least = min(MIN_CHUNK_TOKENS, most_tokens)
        self._target_ms = target_ms
        self._tokens = most_tokens

    @property
    def tokens(self) -> int:
        """Tokens of the next chunk."""
        return self._tokens

    def measured(self, tokens: int, cost_ms: float) -> None:
        """A chunk took `cost_ms`.

        A chunk that was shorter than allowed only ever slows down: its fixed cost
        says little about a long one.
        """
        if not self._target_ms:
            return
        ratio = self._target_ms / max(cost_ms, 0.001)
        wanted = tokens * min(_FASTEST_GROWTH, max(_FASTEST_CUT, ratio))
        if ratio < 1.0 or tokens >= self._tokens:
            self._tokens = round(min(self._most, max(self._least, wanted)))
