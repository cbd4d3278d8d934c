"""Callers: what they ask, and what became of it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import grpc

from tandem.common.v1 import decision_pb2
from tandem.router.v1 import router_pb2, router_pb2_grpc
from tests.e2e.harness import question

DEADLINE_MS = 5_000
# The caller's own end comes later, so that one whom nobody answers in time is seen.
PATIENCE_MS = 1_000
_numbers = itertools.count(1)


@dataclass(slots=True)
class Answer:
    """What a caller got. `kind`: model, cache, stale, draft, canned or none."""

    request_id: str
    kind: str = "none"
    partial: bool = False
    taken_ms: float = 0.0
    hung: bool = False
    code: str = ""
    why: str = ""

    @property
    def overrun_ms(self) -> float:
        """Past the deadline; 0 where kept."""
        return max(0.0, self.taken_ms - DEADLINE_MS)

    @property
    def good(self) -> bool:
        """By a model or a fresh cache, within the budget."""
        return self.kind in ("model", "cache") and self.taken_ms <= DEADLINE_MS


@dataclass(slots=True)
class Stage:
    """How far the callers of one wave are; the injector waits on it."""

    counts: Counter[str] = field(default_factory=Counter)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def reached(self, name: str) -> None:
        """One caller is there."""
        self.counts[name] += 1
        self.changed.set()

    async def wait(self, name: str, count: int, everybody: int) -> bool:
        """Until so many are there; False where all ended before."""
        while self.counts[name] < count:
            if self.counts["ended"] >= everybody:
                return False
            self.changed.clear()
            await self.changed.wait()
        return True


def _letters(number: int) -> str:
    """A number in letters: digits might be taken for personal data."""
    text = ""
    while number:
        number, rest = divmod(number, 26)
        text += chr(97 + rest)
    return text


def make_request(place: int) -> router_pb2.RouteRequest:
    """Half for the edge, half for the cloud; of each half, half held, half shown as it comes.

    Every tenth question is the same, so that the cache has something to do.
    """
    mark = "again" if place % 10 == 9 else _letters(next(_numbers))
    say = "[[say:The small model is glad to help. It says so twice.]]"
    text = f"hello {mark} {say}" if place % 2 else f"计算三笔分期的实际年化利率 {mark} {say}"
    return question(text, stream_mode=1 if place % 4 < 2 else 0)


class Callers:
    """One channel, as a service would keep it.

    Args:
        addresses: Of the routers; with more than one, calls go round, and one that finds its
            router gone is sent again while there is time.
        patience_ms: How long a caller waits after its deadline, to see that one who should
            have answered did not. 0 where nothing but its own end can end a call.
    """

    def __init__(self, addresses: list[str], patience_ms: int = PATIENCE_MS) -> None:
        self._again, self._patience_ms = len(addresses) > 1, patience_ms
        options: list[tuple[str, Any]] = [
            ("grpc.lb_policy_name", "round_robin"),
            ("grpc.max_reconnect_backoff_ms", 500),
            ("grpc.initial_reconnect_backoff_ms", 100),
        ]
        self._channel = grpc.aio.insecure_channel(f"ipv4:{','.join(addresses)}", options)
        self._stub: Any = router_pb2_grpc.RouterServiceStub(self._channel)

    async def ready(self) -> None:
        """Connects to all: the first call alone would go to whom answers first."""
        await self._channel.channel_ready()
        await asyncio.sleep(0.3)

    async def wave(self, prefix: str, count: int, stage: Stage) -> list[Answer]:
        """So many calls at once."""
        asks = [
            self._ask(f"{prefix}-{place}", make_request(place), stage) for place in range(count)
        ]
        return await asyncio.gather(*asks)

    async def close(self) -> None:
        """Ends it."""
        await self._channel.close()

    async def _ask(self, name: str, request: router_pb2.RouteRequest, stage: Stage) -> Answer:
        answer, started = Answer(name), time.monotonic()
        while True:
            spent_ms = (time.monotonic() - started) * 1000.0
            await self._call(answer, request, stage, spent_ms)
            answer.taken_ms = (time.monotonic() - started) * 1000.0
            left = answer.taken_ms < DEADLINE_MS - 100
            if not (self._again and answer.code == "UNAVAILABLE" and left):
                break
            await asyncio.sleep(0.02)
        # Ended by the caller's own patience, or later: nobody answered.
        late = answer.taken_ms > DEADLINE_MS + PATIENCE_MS - 50
        answer.hung = late and answer.kind == "none"
        stage.reached("ended")
        return answer

    async def _call(
        self, answer: Answer, request: router_pb2.RouteRequest, stage: Stage, spent_ms: float
    ) -> None:
        left_ms = DEADLINE_MS - spent_ms
        call = self._stub.RouteStream(
            router_pb2.RouteStreamRequest(request=request),
            timeout=(left_ms + self._patience_ms) / 1000.0,
            metadata=[("deadline_ms", str(int(left_ms))), ("x-request-id", answer.request_id)],
        )
        try:
            async for event in call:
                stage.reached(event.WhichOneof("event"))
                if event.HasField("final"):
                    _take(answer, event.final.outcome)
            answer.code = "OK"
        except grpc.aio.AioRpcError as error:
            answer.code = error.code().name


def _take(answer: Answer, outcome: router_pb2.Outcome) -> None:
    answer.partial = outcome.partial
    decision = outcome.decision
    answer.why = " > ".join(
        f"{decision_pb2.Target.Name(one.target)[7:]} {_name(one)} "
        f"{decision_pb2.Reason.Name(one.reason)[7:]} {one.error_reason}"
        for one in outcome.attempts
    )
    if decision.level == decision_pb2.LEVEL_NONE:
        answer.kind = "cache"
    elif decision.level != decision_pb2.LEVEL_L4:
        answer.kind = "model"
    elif decision.target == decision_pb2.TARGET_CACHE:
        answer.kind = "stale"
    else:
        answer.kind = "canned" if outcome.options else "draft"


def _name(attempt: decision_pb2.Attempt) -> str:
    return decision_pb2.AttemptOutcome.Name(attempt.outcome)[16:]


async def control(calls: int, at_once: int, deadline_ms: int) -> list[float]:
    """The client alone: overrun of calls to a port that accepts and never answers."""
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    stub: Any = router_pb2_grpc.RouterServiceStub(channel)

    async def one() -> float:
        started = time.monotonic()
        with suppress(grpc.aio.AioRpcError):
            await stub.Route(router_pb2.RouteRequest(), timeout=deadline_ms / 1000.0)
        return max(0.0, (time.monotonic() - started) * 1000.0 - deadline_ms)

    found: list[float] = []
    while len(found) < calls:
        found += await asyncio.gather(*(one() for _ in range(at_once)))
    await channel.close()
    server.close()
    return found
