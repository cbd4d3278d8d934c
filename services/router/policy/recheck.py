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
    """

    at_share: float
    edge_share: float
    expected_tokens: int
    cloud_eta_ms: float
    reserve_ms: float

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
