"""Model targets that follow a script, for unit tests of the executor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from services.common.errors import Code, RemoteError
from services.common.vocabulary import Reason, Target
from services.router.policy.plan import Plan
from services.router.targets.base import Began, Done, Job, ModelEvent, Piece
from tandem.common.v1 import chat_pb2


def failure(code: Code, reason: str = "SCRIPTED") -> RemoteError:
    """What a service of ours answers when it fails so."""
    return RemoteError("scripted", code=code, reason=reason, retryable=False)


def answer(text: str, model_id: str = "fake") -> list[ModelEvent]:
    """A whole answer, a piece a word."""
    pieces = [Piece(word) for word in text.replace(" ", " \0").split("\0")]
    usage = chat_pb2.Usage(input_tokens=3, output_tokens=len(pieces))
    return [Began(model_id), *pieces, Done(chat_pb2.FINISH_REASON_STOP, usage)]


@dataclass(slots=True)
class ScriptedTarget:
    """Gives its events in order; an exception among them is raised, a number is slept."""

    script: Sequence[ModelEvent | Exception | float] = ()
    jobs: list[Job] = field(default_factory=list)
    closed: int = 0

    @asynccontextmanager
    async def open(self, job: Job) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        """See `ModelTarget.open`."""
        self.jobs.append(job)
        try:
            yield self._events()
        finally:
            self.closed += 1

    async def _events(self) -> AsyncIterator[ModelEvent]:
        for step in self.script:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                yield step


@dataclass(slots=True)
class CollectingSink:
    """Keeps what a caller would see."""

    shown: list[tuple[str, Target, bool]] = field(default_factory=list)
    withdrawn: list[Reason] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text, withdrawn text too."""
        return "".join(text for text, _, _ in self.shown)

    async def decided(self, plan: Plan) -> None:
        """See `Sink`."""

    async def chunk(self, text: str, target: Target, *, committed: bool) -> None:
        """See `Sink`."""
        self.shown.append((text, target, committed))

    async def superseded(self, reason: Reason, target: Target) -> None:
        """See `Sink`."""
        self.withdrawn.append(reason)
