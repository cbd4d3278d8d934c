"""Two attempts at once, of which one is shown: grey mode `shadow_best`.

The edge's answer is shown where it is judged good enough before the cloud shows anything; else
the cloud's, which is the stronger one and is not waited past. Nothing is stitched: who shows
text first ends the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from services.common.vocabulary import Reason, Target
from services.router.execute.attempt import Ended
from services.router.execute.sink import Sink
from services.router.policy.machine import SERVED
from services.router.policy.plan import Plan

Side = Callable[[Sink], Awaitable[Ended]]


async def duel(sides: Mapping[Target, Side], sink: Sink) -> dict[Target, Ended]:
    """Runs both until one serves or none can; how those ended that were not cut short.

    At most one of them has served, and only its text went to `sink`.
    """
    word = _Word()
    tasks = {
        target: asyncio.create_task(_run(side, _OneSided(sink, word, target)), name=target)
        for target, side in sides.items()
    }
    word.tasks = tasks
    try:
        pending = set(tasks.values())
        while pending and not _served(tasks, word):
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    ended = {target: task.result() for target, task in tasks.items() if not task.cancelled()}
    return {t: e for t, e in ended.items() if e.outcome not in SERVED or t is word.holder}


class _Word:
    """Who may show text: the first that has any to show for good."""

    def __init__(self) -> None:
        self.holder: Target | None = None
        self.tasks: Mapping[Target, asyncio.Task[Ended]] = {}

    def taken_by(self, target: Target) -> bool:
        """True where `target` has the word, from now on; the other is ended then."""
        if self.holder is None:
            self.holder = target
            for other, task in self.tasks.items():
                if other is not target:
                    task.cancel()
        return self.holder is target


class _OneSided:
    """See `Sink`: lets one side's text through, once it has the word."""

    def __init__(self, sink: Sink, word: _Word, target: Target) -> None:
        self._sink = sink
        self._word = word
        self._target = target

    async def decided(self, plan: Plan) -> None:
        await self._sink.decided(plan)

    async def chunk(self, text: str, target: Target, *, committed: bool) -> None:
        if self._word.taken_by(self._target):
            await self._sink.chunk(text, target, committed=committed)

    async def superseded(self, reason: Reason, target: Target) -> None:
        await self._sink.superseded(reason, target)

    def ended(self, ended: Ended) -> None:
        """An answer without text (a tool call) is one too."""
        if ended.outcome in SERVED:
            self._word.taken_by(self._target)


async def _run(side: Side, sink: _OneSided) -> Ended:
    ended = await side(sink)
    sink.ended(ended)
    return ended


def _served(tasks: Mapping[Target, asyncio.Task[Ended]], word: _Word) -> bool:
    """The one that has the word has ended."""
    return word.holder is not None and tasks[word.holder].done()
