"""Reserves before a call and settles after it, however it ends."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from opentelemetry import metrics

from services.cloud_proxy.limits.book import LimitBook
from services.cloud_proxy.limits.store import LimitStore, Reservation, StoreDown
from services.cloud_proxy.policy.cost import Tokens, cost_micro_usd, estimate_prompt
from services.cloud_proxy.policy.limits import Granted, Limit, Refused, Remaining, Spent, Want
from services.cloud_proxy.record import Progress, TierFacts
from services.cloud_proxy.request import ChatRequest, texts
from services.common.errors import BudgetSpent, LimitsUnavailable, RateLimited
from services.common.rpc.call import Call
from services.common.telemetry import names

_log = structlog.get_logger()
# A live call always settles before its lease ends; only a dead proxy's ends by itself.
_LEASE_MARGIN_MS = 30_000
_STORE_RETRY_MS = 1_000
_SAYS = {
    Limit.REQUESTS: "requests per minute",
    Limit.TOKENS: "tokens per minute",
    Limit.CONCURRENCY: "calls at once",
    Limit.BUDGET: "money per day",
}


class Guard:
    """Holds callers to their limits."""

    def __init__(self, book: LimitBook, store: LimitStore) -> None:
        self._book = book
        self._store = store
        meter = metrics.get_meter("tandem.cloud")
        self._refused = meter.create_counter(
            names.LIMIT_REFUSALS, description="Calls refused, by the limit that refused"
        )

    @asynccontextmanager
    async def hold(
        self, call: Call, request: ChatRequest[str], facts: TierFacts, progress: Progress
    ) -> AsyncIterator[None]:
        """What is inside has its quota; `progress` tells in the end what was used.

        Raises:
            RateLimited: Too many requests or tokens, or too many at once.
            BudgetSpent: The day's money would not reach.
            LimitsUnavailable: Redis is down, and the rule is to refuse.
        """
        limits = self._book.of(call.principal)
        if not limits:
            yield
            return
        worst = worst_case(request, facts)
        lease_ms = int(call.budget.remaining_ms(time.monotonic())) + _LEASE_MARGIN_MS
        prices = facts.prices
        want = Want(
            uuid.uuid4().hex, worst.input + worst.output, cost_micro_usd(worst, prices), lease_ms
        )
        try:
            decision = await self._store.reserve(call.principal.tenant, limits, want)
        except StoreDown as exc:
            message = "limits cannot be told now"
            raise LimitsUnavailable(message, retry_after_ms=_STORE_RETRY_MS) from exc
        call.trailers.update(trailers(decision.remaining))
        if isinstance(decision, Refused):
            self._refused.add(1, {"limit": decision.which.value})
            raise refusal(decision)
        reservation = Reservation(call.principal.tenant, tuple(limits), want.id)
        try:
            yield
        finally:
            self._end(reservation, progress, facts, worst.input)

    async def close(self) -> None:
        """Hands the last figures over."""
        await self._store.close()
