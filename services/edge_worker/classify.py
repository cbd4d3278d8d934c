"""The way of one `Classify`: prompt, forks of the label trie on the engine, probabilities."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from services.common.deadline import Budget
from services.common.errors import TandemError
from services.edge_worker.chat_template import Turn
from services.edge_worker.config import LimitSettings
from services.edge_worker.engine import Engine
from services.edge_worker.events import FinishedEvent
from services.edge_worker.fork_reader import ForkReader
from services.edge_worker.job import Job
from services.edge_worker.label_trie import Path, TrieNode, build_trie, fork_paths, label_chances
from services.edge_worker.model import LoadedModel
from services.edge_worker.outlet import Outlet
from services.edge_worker.placing import Lanes, build_prompt, choose_lane, room_tokens
from services.edge_worker.record import Recorder
from services.edge_worker.scheduler.plan import LaneName

_WORDS: Final = "Say which label fits the text best."
# Only ends come back, one for each path.
_MOST_EVENTS: Final = 1_024


@dataclass(frozen=True, slots=True)
class Classification:
    """What `Classify` was asked for, checked and free of protobuf."""

    text: str
    labels: tuple[str, ...]
    instruction: str
    few_shot: tuple[Turn, ...]

    @property
    def system(self) -> str:
        """What the labels mean, and which there are."""
        return (
            f"{self.instruction or _WORDS}\n\n"
            f"Answer with exactly one of these labels: {', '.join(self.labels)}"
        )

    @property
    def chars(self) -> int:
        """Length of all its texts."""
        return len(self.system) + len(self.text) + sum(len(turn.text) for turn in self.few_shot)


class ClassifyPipeline:
    """Reads forks on the engine, in its batches, beside everything else that runs."""

    def __init__(
        self,
        model: LoadedModel,
        engine: Engine,
        lanes: Lanes,
        limits: LimitSettings,
        recorder: Recorder,
    ) -> None:
        self._model = model
        self._engine = engine
        self._lanes = lanes
        self._limits = limits
        self._recorder = recorder

    async def run(self, request: Classification, budget: Budget) -> list[tuple[str, float]]:
        """Every label with its probability, most likely first; they sum to 1.

        Raises:
            InvalidField, ContextTooLong: The request cannot run.
            QueueFull, DeadlineExceeded: Not now, or not in time.
            EngineFailed: It was cut off.
        """
        root = build_trie(map(self._model.encode, request.labels))
        paths = fork_paths(root)
        turns = (*request.few_shot, Turn("user", request.text))
        long = request.chars > self._limits.off_loop_chars
        prompt = await build_prompt(self._model.prompts, turns, request.system, off_loop=long)
        lane = choose_lane(self._lanes, len(prompt), 1 + max(map(len, paths)))
        outcome = "CANCELLED"
        try:
            forks = await self._read(root, paths, prompt, lane, budget)
            outcome = "STOP"
        except TandemError as error:
            outcome = error.reason
            raise
        finally:
            spent_ms = budget.spent_ms(time.monotonic())
            self._recorder.classified(lane, outcome, len(prompt), len(paths), spent_ms)
        found = label_chances(root, forks)
        pairs = [(label, found[index]) for index, label in enumerate(request.labels)]
        return sorted(pairs, key=lambda pair: -pair[1])

    async def _read(
        self,
        root: TrieNode,
        paths: Sequence[Path],
        prompt: tuple[int, ...],
        lane: LaneName,
        budget: Budget,
    ) -> dict[Path, dict[int | None, float]]:
        """Paths in groups that share a prefill, one group after the other."""
        forks: dict[Path, dict[int | None, float]] = {}
        most = min(self._limits.max_classify_rows, self._lanes[lane].max_batch_size)
        for first in range(0, len(paths), most):
            group = paths[first : first + most]
            readers = [ForkReader(root, path, self._model.runtime.info.eos_ids) for path in group]
            await self._run(readers, 1 + max(map(len, group)), prompt, lane, budget)
            for reader in readers:
                forks.update(reader.forks)
        return forks

    async def _run(
        self,
        readers: Sequence[ForkReader],
        tokens: int,
        prompt: tuple[int, ...],
        lane: LaneName,
        budget: Budget,
    ) -> None:
        room_tokens(self._lanes[lane], len(prompt), tokens, len(readers))
        outlet = Outlet(_MOST_EVENTS, _MOST_EVENTS, lambda: self._engine.abort(job))
        job = Job(
            lane=lane,
            tenant="",
            prompt=prompt,
            max_tokens=tokens,
            expires_at=budget.expires_at,
            answers=tuple(readers),
            sink=outlet,
        )
        try:
            self._engine.submit(job)
            running = len(readers)
            while running:
                running -= isinstance(await outlet.get(), FinishedEvent)
        finally:
            self._engine.abort(job)
