"""One provider of a tier: tries, retries, and its breaker."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from services.cloud_proxy.breakers import told
from services.cloud_proxy.policy.cost import (
    Tokens,
    cost_micro_usd,
    estimate_prompt,
    estimate_tokens,
)
from services.cloud_proxy.policy.retry import Failure, next_wait_ms
from services.cloud_proxy.policy.select import final_error
from services.cloud_proxy.providers.base import Completion, Piece, Provider, Sink
from services.cloud_proxy.record import Progress, Recorder, TierFacts
from services.cloud_proxy.redaction.cleared import ClearedRequest
from services.cloud_proxy.request import texts
from services.cloud_proxy.tracing import traced_try
from services.common.breaker import Breaker, Permit
from services.common.deadline import Budget
from services.common.errors import UpstreamBreakerOpen, UpstreamError, UpstreamStalled

Tell = Callable[[TierFacts], None]
"""Told once before a request leaves for a provider."""


class Route:
    """Calls one provider for one tier. Retries live here and nowhere else."""

    def __init__(
        self,
        facts: TierFacts,
        provider: Provider,
        breaker: Breaker,
        recorder: Recorder,
        *,
        weight: int = 1,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.facts = facts
        self.weight = weight
        self._provider = provider
        self._breaker = breaker
        self._recorder = recorder
        self._draw = draw

    def usable(self) -> bool:
        """Whether its breaker would let a call through now."""
        return self._breaker.would_admit(time.monotonic())

    def shut(self) -> UpstreamBreakerOpen:
        """The error of a call that its breaker refuses."""
        left_ms = self._breaker.cooling_ms(time.monotonic())
        said = "the provider failed too often just now and is left alone for a while"
        return UpstreamBreakerOpen(said, retry_after_ms=left_ms or None)

    async def call(
        self, request: ClearedRequest, budget: Budget, progress: Progress, sink: Sink, tell: Tell
    ) -> Completion:
        """Gets an answer, by several tries if need be, all before the first token.

        Raises:
            UpstreamError: The last try's; `UpstreamBreakerOpen` where none was made.
            DeadlineExceeded: The budget ended.
        """
        last: UpstreamError | None = None
        number = 0
        while True:
            try:
                permit = self._admit()
                number += 1
                with told(permit):
                    if number == 1:
                        progress.facts = self.facts
                        tell(self.facts)
                    progress.tries += 1
                    return await self._try(request, budget, progress, sink)
            except UpstreamError as error:
                wait_ms = self._next_wait_ms(error, number, budget, progress)
                last = final_error(last, error)
                if wait_ms is None:
                    raise last from error.__cause__
            await asyncio.sleep(wait_ms / 1000.0)

    async def warm(self) -> None:
        """Opens a connection ahead of the first call; tells nobody where it fails."""
        await self._provider.warm()

    async def close(self) -> None:
        """Closes the provider's pool."""
        await self._provider.close()

    def _admit(self) -> Permit:
        permit = self._breaker.admit(time.monotonic())
        if permit is None:
            raise self.shut()
        return permit

    def _next_wait_ms(
        self, error: UpstreamError, number: int, budget: Budget, progress: Progress
    ) -> float | None:
        if isinstance(error, UpstreamBreakerOpen):
            return None
        failure = Failure(
            number=number,
            retryable=error.retryable,
            timed_out=isinstance(error, UpstreamStalled),
            answering=progress.answering,
            retry_after_ms=error.retry_after_ms,
        )
        remaining_ms = budget.remaining_ms(time.monotonic())
        return next_wait_ms(self.facts.retry, failure, remaining_ms=remaining_ms, draw=self._draw())

    async def _try(
        self, request: ClearedRequest, budget: Budget, progress: Progress, sink: Sink
    ) -> Completion:
        async def take(piece: Piece) -> None:
            if not progress.answering:
                progress.answering = True
                progress.first_token_at = time.monotonic()
            progress.model_id = piece.model_id
            progress.output.append(piece.text)
            await sink(piece)

        completion: Completion | None = None
        with traced_try(self.facts, budget, progress, self._recorder):
            try:
                completion = await self._provider.generate(
                    request, take, expires_at=budget.expires_at
                )
                return completion
            finally:
                self._account(request, progress, completion)

    def _account(
        self, request: ClearedRequest, progress: Progress, completion: Completion | None
    ) -> None:
        """Counts tokens: the provider's own, else ours; also of an answer that was cut."""
        if completion is not None:
            progress.model_id = completion.model_id
        told = completion.tokens if completion else None
        if told is None and (completion is not None or progress.answering):
            told = _estimate(request, progress)
        if told is not None:
            progress.tokens = told
            progress.cost_micro_usd = cost_micro_usd(told, self.facts.prices.at(time.time()))


def _estimate(request: ClearedRequest, progress: Progress) -> Tokens:
    turns = len(request.messages) + len(request.few_shot)
    prompt = estimate_prompt((text.text for text in texts(request)), turns)
    return Tokens(prompt, 0, estimate_tokens(["".join(progress.output)]), estimated=True)
