"""The cache as the pipeline sees it: look, keep, forget. Whatever fails here is a miss."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import structlog
from opentelemetry import metrics

from services.common.embedding.runner import Vector
from services.common.telemetry import names
from services.common.vocabulary import Reason
from services.router.ask import Ask
from services.router.cache.entry import CachedAnswer, escalated, load, storable
from services.router.cache.escalations import Escalations, recall
from services.router.cache.flights import Ended, Flights
from services.router.cache.key import Key
from services.router.cache.semantic import Found, SemanticCache
from services.router.cache.store import KeyValueStore, StoreDown
from services.router.execute.trail import Reply

_log = structlog.get_logger()
_meter = metrics.get_meter("tandem.router")
_looks = _meter.create_counter(names.CACHE_LOOKS, description="Looks into the cache, by outcome")
_wrong = _meter.create_counter(
    names.CACHE_WRONG_HITS, description="Stored answers dropped after a bad verdict, by use"
)
_T = TypeVar("_T")
_MAX_PENDING = 256
# A verdict comes within minutes or hours; the note of what served is kept for a day.
_NOTE_S = 86_400.0


@dataclass(slots=True)
class Look:
    """What one request found, and what is needed to keep its answer.

    Attributes:
        key: None where the request must not touch the cache.
        hit: What may serve now, and why.
        stale: What may serve as a last resort, marked degraded.
        leads: This request leads a flight and must land it.
    """

    key: Key | None = None
    vector: Vector | None = None
    hit: tuple[CachedAnswer, Reason] | None = None
    stale: CachedAnswer | None = None
    leads: bool = False


@dataclass(slots=True)
class CacheDesk:
    """One for the process."""

    exact: KeyValueStore
    semantic: SemanticCache | None
    wall: Callable[[], float]
    _flights: Flights = field(default_factory=Flights)
    _pending: set[asyncio.Task[None]] = field(default_factory=set)
    _escalations: Escalations = field(init=False)

    def __post_init__(self) -> None:
        self._escalations = Escalations(self.exact)

    async def look(self, ask: Ask, key: Key, patience_ms: float) -> Look:
        """Looks for an answer; where an equal request is under way, waits for its answer."""
        look = Look(key)
        await self._look_exact(look, key)
        if look.hit is None:
            await self._remember(ask, look, key)
        if look.hit is None:
            await self._fly(look, key, patience_ms / 1000.0)
        if look.leads:
            await self._look_semantic_safely(ask, look, key)
        outcome = look.hit[1] if look.hit else "MISS"
        _looks.add(1, {names.OUTCOME: outcome})
        if look.hit is not None:
            self._later(self._note(ask, look.hit[0], look.hit[1]))
        return look

    def done(self, ask: Ask, look: Look, reply: Reply | None) -> None:
        """Ends a request: keeps a good answer, and lands its flight. Never awaits.

        Args:
            reply: None where the caller left or the request failed.
        """
        key = look.key
        if key is None:
            return
        answer = None
        if reply is not None and look.hit is None and storable(reply):
            answer = self._answer(ask, key, reply)
            self._later(self._keep(ask, look, key, answer))
        if answer is not None and reply is not None and escalated(reply) and key.session:
            self._later(self._keep_escalated(ask, look, key, answer))
        if look.leads:
            fell = Ended.LEFT if reply is None else Ended.FELL_SHORT
            shared = look.hit[0] if look.hit else answer
            self._flights.land(key.fingerprint, shared or fell)

    async def forget(self, tenant: str, request_id: str) -> None:
        """A bad verdict: drops the answer that the request was served, or gave."""
        noted = await self._guarded(self.exact.get(_note_key(tenant, request_id)))
        if noted is None:
            return
        use, _, rest = noted.decode().partition(" ")
        fingerprint, _, row = rest.partition(" ")
        await self._guarded(self.exact.drop(fingerprint))
        if row and self.semantic is not None:
            await self._guarded(self.semantic.vectors.drop(row))
        if use != Reason.DEFAULT:
            _wrong.add(1, {names.REASON: use})

    async def stop(self) -> None:
        """Finishes what is being stored, and closes the stores."""
        if self._pending:
            await asyncio.wait(self._pending, timeout=2.0)
        await self.exact.close()
        if self.semantic is not None:
            await self.semantic.vectors.close()

    async def _fly(self, look: Look, key: Key, patience_s: float) -> None:
        """Takes the lead, or waits for who has it; when a leader leaves, one waiter follows."""
        loop = asyncio.get_running_loop()
        until = loop.time() + patience_s
        while not (leads := self._flights.lead(key.fingerprint)):
            landed = await self._flights.wait(key.fingerprint, until - loop.time())
            if isinstance(landed, CachedAnswer):
                look.hit = (landed, Reason.CACHE_EXACT)
            if landed is not Ended.LEFT:
                break
        look.leads = leads

    async def _look_exact(self, look: Look, key: Key) -> None:
        if not key.rules.exact:
            return
        data = await self._guarded(self.exact.get(key.fingerprint))
        answer = load(data) if data else None
        if answer is None:
            return
        if answer.fresh_until > self.wall():
            look.hit = (answer, Reason.CACHE_EXACT)
        else:
            look.stale = answer

    async def _remember(self, ask: Ask, look: Look, key: Key) -> None:
        """A repeat or doubt of what was escalated in this session."""
        if not key.session or not key.memory.enabled:
            return
        kept = await self._guarded(self._escalations.of(key))
        if not kept:
            return
        last = ask.request.messages[-1].content
        if self.semantic is not None and len(last) <= key.rules.similarity.max_chars:
            look.vector = await self.semantic.embedder.vector(last, ask.vector)
        known = look.vector is not None and look.vector.unknown_share == 0
        values = look.vector.values if look.vector is not None and known else None
        answer = recall(ask, key, kept, values, self.wall())
        if answer is not None:
            look.hit = (answer, Reason.ESCALATION_MEMORY)

    async def _keep_escalated(self, ask: Ask, look: Look, key: Key, answer: CachedAnswer) -> None:
        vector, last = look.vector, ask.request.messages[-1].content
        if vector is None and self.semantic is not None:
            vector = await self.semantic.embedder.vector(last, ask.vector)
        known = vector is not None and vector.unknown_share == 0
        answer = replace(answer, fresh_until=self.wall() + key.memory.ttl_s)
        bounds = key.memory.max_per_session, key.memory.ttl_s
        values = vector.values if vector is not None and known else None
        await self._guarded(self._escalations.add(ask, key, answer, values, bounds))

    async def _look_semantic_safely(self, ask: Ask, look: Look, key: Key) -> None:
        """The flight lands even where the caller leaves during the search."""
        try:
            await self._look_semantic(ask, look, key)
        except BaseException:
            self._flights.land(key.fingerprint, Ended.LEFT)
            look.leads = False
            raise

    async def _look_semantic(self, ask: Ask, look: Look, key: Key) -> None:
        if self.semantic is None or not key.question:
            return
        if look.vector is None:
            look.vector = await self.semantic.embedder.vector(key.question, ask.vector)
        if look.vector is None:
            return
        search = self.semantic.find(key.scope, key.question, look.vector, key.rules)
        found = await self._guarded(search) or Found()
        answers = [(load(one.value), True) for one in found.close]
        answers += [(load(one.value), False) for one in found.loose]
        for answer, close in answers:
            if answer is not None and close and answer.fresh_until > self.wall():
                look.hit = (answer, Reason.CACHE_SEMANTIC)
                return
            look.stale = look.stale or answer

    def _answer(self, ask: Ask, key: Key, reply: Reply) -> CachedAnswer:
        return CachedAnswer(
            text=reply.text,
            model_id=reply.model_id,
            standin=reply.standin,
            fresh_until=self.wall() + key.rules.ttl_s,
            fingerprint=key.fingerprint,
            row=uuid.uuid4().hex if key.question and self.semantic else "",
            request_id=ask.request_id,
        )

    async def _keep(self, ask: Ask, look: Look, key: Key, answer: CachedAnswer) -> None:
        ttl_s, data = key.rules.ttl_s + key.rules.stale_s, answer.dump()
        if key.rules.exact:
            await self._guarded(self.exact.put(key.fingerprint, data, ttl_s))
        if self.semantic is not None and key.question and look.vector is not None:
            stored = self.semantic.put(
                key.scope, answer.row, key.question, look.vector, data, ttl_s
            )
            await self._guarded(stored)
        await self._note(ask, answer, Reason.DEFAULT)

    async def _note(self, ask: Ask, answer: CachedAnswer, use: str) -> None:
        """Remembers what a request was served, so that a verdict on it finds the row."""
        note = f"{use} {answer.fingerprint} {answer.row}".encode()
        await self._guarded(
            self.exact.put(_note_key(ask.tenant.name, ask.request_id), note, _NOTE_S)
        )

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Stores off the caller's way; when too much waits, it is left out."""
        if len(self._pending) >= _MAX_PENDING:
            work.close()
            _looks.add(1, {names.OUTCOME: "NOT_STORED"})
            return
        task = asyncio.get_running_loop().create_task(work)
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    async def _guarded(self, work: Awaitable[_T]) -> _T | None:
        try:
            return await work
        except StoreDown as error:
            _log.warning("cache_store_down", error=str(error))
            _looks.add(1, {names.OUTCOME: "STORE_DOWN"})
            return None


def _note_key(tenant: str, request_id: str) -> str:
    return f"served:{tenant}:{request_id}"
