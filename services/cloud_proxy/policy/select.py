"""Which of a tier's providers is called next. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.common.errors import (
    UpstreamBreakerOpen,
    UpstreamError,
    UpstreamMisconfigured,
    UpstreamRefused,
)


@dataclass(frozen=True, slots=True)
class Offer:
    """One provider, as the choice sees it.

    Attributes:
        weight: Its share of the calls; 0: only where no weighted one is left.
        usable: Not tried for this call, and its breaker lets calls through.
    """

    weight: int
    usable: bool


def choose(offers: Sequence[Offer], *, draw: float) -> int | None:
    """The place of the next provider to call; None where none is left.

    Among the weighted ones by weight, then the others in their order.

    Args:
        offers: All providers of the tier.
        draw: Uniform in [0, 1).
    """
    usable = [place for place, offer in enumerate(offers) if offer.usable]
    weighted = [place for place in usable if offers[place].weight > 0]
    if not weighted:
        return usable[0] if usable else None
    mark = draw * sum(offers[place].weight for place in weighted)
    for place in weighted:
        mark -= offers[place].weight
        if mark < 0:
            return place
    return weighted[-1]


def is_providers_fault(error: UpstreamError) -> bool:
    """Whether the provider failed, so that its breaker counts it and another may be asked.

    Not so where it refused this request as such: others would too.
    """
    return not isinstance(error, UpstreamRefused) or isinstance(error, UpstreamMisconfigured)


def final_error(last: UpstreamError | None, new: UpstreamError) -> UpstreamError:
    """What a caller is told: a real failure rather than a breaker that was open behind it."""
    return last if last is not None and isinstance(new, UpstreamBreakerOpen) else new
