"""The latency gate, asked again while the edge runs (design, section 4). Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recheck:
    """What the second look compares with; fixed when the attempt is entered.

    Attributes:
        at_share: Share of the budget at which the gate is asked again, once.
        edge_share: The rest of the edge's answer must fit this share of what remains.
        expected_tokens: Tokens that the answer is expected to have.
        cloud_eta_ms: ETA of the next cloud attempt.
        reserve_ms: Kept back for the last resort.
        ttft_ms: What the edge was expected to need to its first token.
    """

    at_share: float
    edge_share: float
    expected_tokens: int
    cloud_eta_ms: float
    reserve_ms: float
    ttft_ms: float = 0.0

    def silence_ms(self, spent_ms: float, granted_ms: float) -> float | None:
        """How long from now on an edge may stay without a token; None: as long as its cap.

        Until the second look is due, and no shorter than twice what was expected; and only
        where the cloud still fits afterwards. A process that stopped tells nothing else.
        """
        wait_ms = max(self.at_share * granted_ms - spent_ms, 2.0 * self.ttft_ms)
        left_ms = granted_ms - spent_ms - wait_ms - self.reserve_ms
        return wait_ms if self.cloud_eta_ms <= left_ms else None

    def due(self, spent_ms: float, granted_ms: float) -> bool:
        """True from `at_share` of the budget on."""
        return spent_ms >= self.at_share * granted_ms

    def leave(self, tokens: int, decoding_ms: float, remaining_ms: float) -> bool:
        """True where the edge will be late by its measured TPOT and the cloud still fits.

        Args:
            tokens: Tokens made so far, at least 1.
            decoding_ms: Time since the first of them.
            remaining_ms: Budget left now.
        """
        if tokens < 2:
            return False
        tpot_ms = decoding_ms / (tokens - 1)
        rest_ms = max(0, self.expected_tokens - tokens) * tpot_ms
        late = rest_ms > self.edge_share * remaining_ms
        return late and self.cloud_eta_ms <= remaining_ms - self.reserve_ms
