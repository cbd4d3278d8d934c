"""The spine: what happens to a call between its entrance and its record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from services.cloud_proxy.limits.guard import Guard
from services.cloud_proxy.providers.base import Completion, Piece
from services.cloud_proxy.record import Progress, Recorder, TierFacts
from services.cloud_proxy.redaction.audit import audit
from services.cloud_proxy.redaction.gate import Gate
from services.cloud_proxy.redaction.restorer import Restorer, restore_calls
from services.cloud_proxy.request import ChatRequest, Tier
from services.cloud_proxy.upstream import Upstream
from services.common.deadline import Budget
from services.common.errors import DeadlineExceeded
from services.common.rpc.call import Call


class Answer(Protocol):
    """Where the answer goes, piece by piece."""

    async def started(self, facts: TierFacts, model_id: str, tries: int) -> None:
        """Called once, before the first piece."""

    async def delta(self, text: str) -> None:
        """Called with each piece of text."""


@dataclass(frozen=True, slots=True)
class Result:
    """A finished call."""

    completion: Completion
    progress: Progress


class Pipeline:
    """Serves calls that the entrance has authenticated."""

    def __init__(
        self, gate: Gate, tiers: Mapping[Tier, Upstream], recorder: Recorder, guard: Guard
    ) -> None:
        self._gate = gate
        self._tiers = tiers
        self._recorder = recorder
        self._guard = guard

    async def generate(self, call: Call, request: ChatRequest[str], answer: Answer) -> Result:
        """Reserves, screens, calls the tier's provider, restores the answer, records.

        Raises:
            RateLimited, BudgetSpent: A limit of the caller's refused.
            PiiBlocked: Personal data would leave.
            UpstreamError: The provider failed.
            DeadlineExceeded: The budget ended.
        """
        upstream = self._tiers[request.tier]
        with self._recorder.call(call, upstream.offers[0]) as progress:
            quota = self._guard.hold(call, request, upstream.offers, progress)
            async with _within(call.budget), quota:
                cleared = await self._gate.clear(request, call.principal.tenant)
                tell = partial(audit, call, clearance=cleared)
                in_json = request.output.json_schema is not None
                restorer = Restorer(cleared.values, in_json=in_json)
                relay = _Relay(answer, upstream.offers[0], progress, restorer)
                completion = await upstream.call(
                    cleared.request, call.budget, progress, relay.take, tell
                )
                await relay.end(completion)
        calls = restore_calls(completion.tool_calls, cleared.values)
        return Result(replace(completion, tool_calls=calls), progress)


class _Relay:
    """Says once that the answer has begun, then passes text on, with values put back."""

    def __init__(
        self, answer: Answer, facts: TierFacts, progress: Progress, restorer: Restorer
    ) -> None:
        self._answer = answer
        self._facts = facts
        self._progress = progress
        self._restorer = restorer
        self._begun = False

    async def take(self, piece: Piece) -> None:
        await self._begin(piece.model_id)
        await self._pass_on(self._restorer.feed(piece.text))

    async def end(self, completion: Completion) -> None:
        """Called once the answer is whole; what is held when it breaks off is dropped."""
        await self._begin(completion.model_id)
        await self._pass_on(self._restorer.flush())

    async def _pass_on(self, text: str) -> None:
        if text:
            await self._answer.delta(text)

    async def _begin(self, model_id: str) -> None:
        if not self._begun:
            self._begun = True
            facts = self._progress.facts or self._facts
            await self._answer.started(facts, model_id, self._progress.tries)


@asynccontextmanager
async def _within(budget: Budget) -> AsyncIterator[None]:
    """Ends what is inside when the budget does: also screening and a caller that reads slowly."""
    try:
        async with asyncio.timeout(budget.remaining_ms(time.monotonic()) / 1000.0):
            yield
    except TimeoutError as exc:
        raise DeadlineExceeded("the answer was not complete within the deadline") from exc
