"""Reserves before a call and settles after it, however it ends."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from opentelemetry import metrics, trace

from services.cloud_proxy.limits.book import LimitBook
from services.cloud_proxy.limits.store import LimitStore, Reservation, StoreDown
from services.cloud_proxy.policy.cost import Tokens, cost_micro_usd, estimate_prompt
from services.cloud_proxy.policy.limits import Limit, Limits, Refused, Remaining, Spent, Want
from services.cloud_proxy.record import Progress, TierFacts
from services.cloud_proxy.request import ChatRequest, texts
from services.common.errors import BudgetSpent, LimitsUnavailable, RateLimited
from services.common.rpc.call import Call
from services.common.telemetry import names

_tracer = trace.get_tracer("tandem.cloud")
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
        self,
        call: Call,
        request: ChatRequest[str],
        offers: Sequence[TierFacts],
        progress: Progress,
    ) -> AsyncIterator[None]:
        """What is inside has its quota; `progress` tells in the end what was used.

        Reserved is the most that any of `offers` could take.

        Raises:
            RateLimited: Too many requests or tokens, or too many at once.
            BudgetSpent: The day's money would not reach.
            LimitsUnavailable: Redis is down, and the rule is to refuse.
        """
        worst = [worst_case(request, facts) for facts in offers]
        progress.prompt_tokens = worst[0].input
        limits = self._book.of(call.principal)
        if not limits:
            yield
            return
        with _tracer.start_as_current_span(names.SPAN_LIMIT, record_exception=False):
            reservation = await self._reserve(call, limits, _most(worst, offers))
        try:
            yield
        finally:
            self._end(reservation, progress)

    async def close(self) -> None:
        """Hands the last figures over."""
        await self._store.close()

    async def _reserve(self, call: Call, limits: Mapping[str, Limits], most: Spent) -> Reservation:
        want = Want(
            id=uuid.uuid4().hex,
            tokens=most.tokens,
            micro_usd=most.micro_usd,
            lease_ms=int(call.budget.remaining_ms(time.monotonic())) + _LEASE_MARGIN_MS,
        )
        tenant = call.principal.tenant
        try:
            decision = await self._store.reserve(tenant, limits, want)
        except StoreDown as exc:
            message = "limits cannot be told now"
            raise LimitsUnavailable(message, retry_after_ms=_STORE_RETRY_MS) from exc
        call.trailers.update(trailers(decision.remaining))
        if isinstance(decision, Refused):
            self._refused.add(1, {names.LIMIT: decision.which.value})
            raise refusal(decision)
        return Reservation(tenant, tuple(limits), want.id)

    def _end(self, reservation: Reservation, progress: Progress) -> None:
        """Also counts tries that a provider may have billed without saying so."""
        told, doubtful = progress.tokens, progress.doubtful
        tokens = told.input + told.output + doubtful.input
        if not tokens:
            self._store.release(reservation)
            return
        money = progress.cost_micro_usd + progress.doubtful_micro_usd
        self._store.settle(reservation, Spent(tokens, money))


def _most(worst: Sequence[Tokens], offers: Sequence[TierFacts]) -> Spent:
    now = time.time()
    pairs = zip(worst, offers, strict=True)
    return Spent(
        max(tokens.input + tokens.output for tokens in worst),
        max(cost_micro_usd(tokens, facts.prices.at(now)) for tokens, facts in pairs),
    )


def worst_case(request: ChatRequest[str], facts: TierFacts) -> Tokens:
    """The most that one good try may use: the prompt as we count it, and the output cap."""
    turns = len(request.messages) + len(request.few_shot)
    cap = facts.max_output_tokens
    output = min(request.max_output_tokens or cap, cap)
    return Tokens(estimate_prompt(texts(request), turns), 0, output, estimated=True)


def trailers(remaining: Remaining) -> dict[str, str]:
    """What is left, as trailing metadata; nothing where nothing limits."""
    named = {
        "x-ratelimit-remaining-requests": remaining.requests,
        "x-ratelimit-remaining-tokens": remaining.tokens,
        "x-ratelimit-remaining-usd-micro": remaining.micro_usd,
    }
    return {name: str(value) for name, value in named.items() if value is not None}


def refusal(refused: Refused) -> RateLimited | BudgetSpent:
    """The error of a refused call; a call that would never fit gets no `RetryInfo`."""
    what = f"the limit of {_SAYS[refused.which]} is reached"
    if refused.retry_after_ms is None:
        what = f"the call alone is above the limit of {_SAYS[refused.which]}"
    kind = BudgetSpent if refused.which is Limit.BUDGET else RateLimited
    return kind(what, retry_after_ms=refused.retry_after_ms)
