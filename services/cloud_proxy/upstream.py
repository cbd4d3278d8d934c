"""One tier's way to its providers: which is called, and which next where one fails."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence

import structlog

from services.cloud_proxy.policy.retry import LEAST_USEFUL_MS
from services.cloud_proxy.policy.select import Offer, choose, final_error, is_providers_fault
from services.cloud_proxy.providers.base import Completion, Sink
from services.cloud_proxy.record import Progress, TierFacts
from services.cloud_proxy.redaction.cleared import ClearedRequest
from services.cloud_proxy.route import Route, Tell
from services.common.deadline import Budget
from services.common.errors import UpstreamError

_log = structlog.get_logger()


class Upstream:
    """The providers of one tier, at least one."""

    def __init__(self, routes: Sequence[Route], draw: Callable[[], float] = random.random) -> None:
        self._routes = tuple(routes)
        self._draw = draw

    @property
    def offers(self) -> tuple[TierFacts, ...]:
        """What is told of each provider, the tier's own first."""
        return tuple(route.facts for route in self._routes)

    async def call(
        self, request: ClearedRequest, budget: Budget, progress: Progress, sink: Sink, tell: Tell
    ) -> Completion:
        """Gets an answer from one provider, or from the next where it fails before a token.

        Raises:
            UpstreamError: The last failure; `UpstreamBreakerOpen` where nobody could be asked.
            DeadlineExceeded: The budget ended.
        """
        tried: set[int] = set()
        last: UpstreamError | None = None
        while (place := self._choose(tried)) is not None:
            tried.add(place)
            try:
                return await self._routes[place].call(request, budget, progress, sink, tell)
            except UpstreamError as error:
                last = final_error(last, error)
                if not self._goes_on(error, budget, progress):
                    raise last from error.__cause__
        raise last or self._shut()

    def introduce(self) -> None:
        """Says at start who will be called."""
        for route in self._routes:
            facts = route.facts
            _log.info(
                "tier",
                tier=facts.tier.value,
                provider=facts.provider,
                model=facts.model,
                standin=facts.standin,
                weight=route.weight,
            )

    async def warm(self) -> None:
        """Opens connections ahead of the first call; tells nobody where it fails."""
        await asyncio.gather(*(route.warm() for route in self._routes))

    async def close(self) -> None:
        """Closes the providers' pools."""
        for route in self._routes:
            await route.close()

    def _choose(self, tried: set[int]) -> int | None:
        offers = [
            Offer(route.weight, place not in tried and route.usable())
            for place, route in enumerate(self._routes)
        ]
        return choose(offers, draw=self._draw())

    def _goes_on(self, error: UpstreamError, budget: Budget, progress: Progress) -> bool:
        enough = budget.remaining_ms(time.monotonic()) >= LEAST_USEFUL_MS
        return enough and not progress.answering and is_providers_fault(error)

    def _shut(self) -> UpstreamError:
        """Nobody could be asked: the error of the one that may be asked soonest."""
        errors = [route.shut() for route in self._routes]
        return min(errors, key=lambda error: error.retry_after_ms or 0)
