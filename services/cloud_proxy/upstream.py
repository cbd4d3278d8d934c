"""One tier's way to its provider: tries and retries."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from services.cloud_proxy.policy.cost import (
    Tokens,
    cost_micro_usd,
    estimate_prompt,
    estimate_tokens,
)
from services.cloud_proxy.policy.retry import Failure, next_wait_ms
from services.cloud_proxy.providers.base import Completion, Piece, Provider, Sink
from services.cloud_proxy.record import Progress, Recorder, TierFacts
from services.cloud_proxy.redaction.cleared import ClearedRequest
from services.cloud_proxy.request import texts
from services.cloud_proxy.tracing import traced_try
from services.common.deadline import Budget
from services.common.errors import UpstreamError, UpstreamStalled


class Upstream:
    """Calls one provider for one tier. Retries live here and nowhere else."""

    def __init__(
        self,
        facts: TierFacts,
        provider: Provider,
        recorder: Recorder,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.facts = facts
        self._provider = provider
        self._recorder = recorder
        self._draw = draw

    async def call(
        self, request: ClearedRequest, budget: Budget, progress: Progress, sink: Sink
    ) -> Completion:
        """Gets an answer, by several tries if need be, all before the first token.

        Raises:
            UpstreamError: The last try's.
            DeadlineExceeded: The budget ended.
        """
        while True:
            progress.tries += 1
            try:
                return await self._try(request, budget, progress, sink)
            except UpstreamError as error:
                wait_ms = self._next_wait_ms(error, budget, progress)
                if wait_ms is None:
                    raise
            await asyncio.sleep(wait_ms / 1000.0)

    async def warm(self) -> None:
        """Opens a connection ahead of the first call; tells nobody where it fails."""
        await self._provider.warm()

    async def close(self) -> None:
        """Closes the provider's pool."""
        await self._provider.close()

    def _next_wait_ms(
        self, error: UpstreamError, budget: Budget, progress: Progress
    ) -> float | None:
        failure = Failure(
            number=progress.tries,
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
