"""One lane: its queue, the sequence being prefilled, its batch and its KV ledger."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from services.edge_worker.scheduler.batch import Batch
from services.edge_worker.scheduler.estimate import Backlog, LaneRates
from services.edge_worker.scheduler.kvledger import KvLedger
from services.edge_worker.scheduler.pace import ChunkPace
from services.edge_worker.scheduler.plan import DecodeWork, LaneName, PrefillWork, RowMove
from services.edge_worker.scheduler.queue import TenantQueue
from services.edge_worker.scheduler.sequence import Sequence, State

# A chunk smaller than this part of the budget costs a whole pass over the weights
# for little: it waits for the next decode step, which renews the budget.
_SMALLEST_CHUNK = 4


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """What a lane may use.

    Attributes:
        name: Which lane.
        slots: Rows of the pool.
        max_batch_size: Most sequences that hold a place, at most `slots`.
        row_tokens: Positions of a row.
        pool_tokens: Positions that all sequences together may reserve.
        max_queue: Most sequences that wait.
        max_wait_ms: A new batch waits this long after its first row for others.
        prefill_chunk_tokens: Most prompt tokens between two decode steps.
        prefill_chunk_ms: Time that a chunk of them should take; 0: no aim.
        share: Weight of the lane while both have work.
    """

    name: LaneName
    slots: int
    max_batch_size: int
    row_tokens: int
    pool_tokens: int
    max_queue: int
    max_wait_ms: float
    prefill_chunk_tokens: int
    prefill_chunk_ms: float
    share: float

    @property
    def longest_tokens(self) -> int:
        """Longest prompt and answer together that can ever run here."""
        return min(self.row_tokens, self.pool_tokens)


class Lane:
    """Changed by the scheduler alone, between steps."""

    def __init__(self, limits: LaneLimits) -> None:
        self.limits = limits
        self.queue = TenantQueue()
        self.ledger = KvLedger(limits.pool_tokens)
        self.rates = LaneRates()
        self.batch = Batch(limits.name, limits.slots)
        self.prefilling: Sequence | None = None
        self.steps = 0
        self.rows = 0
        self.shared_steps = 0
        self._pace = ChunkPace(limits.prefill_chunk_tokens, limits.prefill_chunk_ms)
        self._credit = self._pace.tokens
        self._hold_until = 0.0
        self._last_step_at = 0.0

    @property
    def active(self) -> int:
        """Sequences that hold a place."""
        return len(self.batch) + (len(self.prefilling.group) if self.prefilling else 0)

    def holders(self) -> Iterator[Sequence]:
        """Sequences that hold a place."""
        if self.prefilling is not None:
            yield from self.prefilling.group
        yield from self.batch.sequences

    def waiting(self) -> Iterator[Sequence]:
        """Sequences in the queue, further samples included."""
        for leader in self.queue:
            yield from leader.group

    def backlog(self) -> Backlog:
        """What stands before a new request."""
        left = self.prefilling.prompt_left if self.prefilling is not None else 0
        return Backlog(
            waiting=len(self.queue),
            active=self.active,
            places=self.limits.max_batch_size,
            prompt_tokens=self.queue.prompt_tokens + left,
        )

    def plan(self, now: float) -> PrefillWork | DecodeWork | None:
        """The next call for this lane; starts a waiting sequence where there is room.

        Prompts are read until the budget of this interval is used, then the running
        rows get their step, which renews it.
        """
        sequence = self.prefilling or self._startable()
        if sequence is not None and self._may_prefill(sequence):
            return self._prefill(sequence, now)
        if len(self.batch) and (now >= self._hold_until or sequence is not None):
            return self._decode()
        return None

    def ready(self, now: float) -> bool:
        """True where `plan` would give work."""
        if len(self.batch):
            return now >= self._hold_until or (self.prefilling or self._startable()) is not None
        return (self.prefilling or self._startable()) is not None

    def hold_until(self) -> float | None:
        """When the batch stops waiting for others; None without a batch."""
        return self._hold_until if len(self.batch) else None

    def prefilled(
        self, work: PrefillWork, ended: Collection[int], cost_ms: float, now: float
    ) -> tuple[RowMove, ...]:
        """A chunk was computed; with the last one first tokens were drawn too."""
        leader = self._prefilling(work.ids)
        for sequence in leader.group:
            sequence.compute(work.count)
        self._credit -= work.count
        self._pace.measured(work.count, cost_ms)
        if not work.last:
            return ()
        prefill_ms = (now - leader.started_at) * 1000.0
        self.rates.first_token(prefill_ms, leader.spec.prompt_tokens, now)
        self.prefilling = None
        return self._join(leader.group, ended, now)

    def _join(
        self, group: Iterable[Sequence], ended: Collection[int], now: float
    ) -> tuple[RowMove, ...]:
        """Each sample gets a row of its own, but those whose first token was the last."""
        alone, moves = not len(self.batch), []
        for sequence in group:
            sequence.produce()
            if sequence.spec.id in ended:
                self._finish(sequence, now)
            else:
                moves.append(self.batch.join(sequence))
        if moves and alone:
            self._hold_until = now + self.limits.max_wait_ms / 1000.0
            self._last_step_at = now
        if moves and self.active >= self.limits.max_batch_size:
            self._hold_until = now
        return tuple(moves)

    def decoded(self, ended: Collection[int], now: float) -> tuple[RowMove, ...]:
        """Every row got a token; those in `ended` have their last."""
        rows = self.batch.sequences
        for sequence in rows:
            sequence.produce()
        self.steps += 1
        self.rows += len(rows)
        self.shared_steps += len(rows) > 1
        self.rates.interval((now - self._last_step_at) * 1000.0, now)
        self._last_step_at = now
        self._credit = self._pace.tokens
        leaving = [sequence for sequence in rows if sequence.spec.id in ended]
        moves = self.batch.leave(leaving)
        for sequence in leaving:
            self._finish(sequence, now)
        return moves

    def drop(self, leaving: Collection[Sequence], state: State) -> tuple[RowMove, ...]:
        """Takes out sequences in any state that has not ended.

        Samples that do not run yet come as whole groups.
        """
        running = [one for one in leaving if one.state is State.RUNNING]
        moves = self.batch.leave(running)
        for sequence in leaving:
            if sequence.state is State.WAITING and sequence is sequence.group[0]:
                self.queue.remove(sequence)
            elif sequence is self.prefilling:
                self.prefilling = None
            self.ledger.release(sequence.spec.id)
            sequence.end(state)
        return moves

    def _startable(self) -> Sequence | None:
        head = self.queue.head()
        if head is None or self.prefilling is not None:
            return None
        room = self.active + len(head.group) <= self.limits.max_batch_size
        return head if room and self.ledger.fits(head.spec.group_tokens) else None

    def _may_prefill(self, sequence: Sequence) -> bool:
        if not len(self.batch):
            return True
        smallest = math.ceil(self._pace.tokens / _SMALLEST_CHUNK)
        return self._credit >= min(sequence.prompt_left, smallest)

    def _prefill(self, sequence: Sequence, now: float) -> PrefillWork:
        first = sequence is not self.prefilling
        if first:
            self.queue.pop()
            for one in sequence.group:
                self.ledger.reserve(one.spec.id, one.spec.reserved_tokens)
                one.start(now)
            self.prefilling = sequence
        budget = min(self._credit, self._pace.tokens) if len(self.batch) else self._pace.tokens
        count = min(sequence.prompt_left, budget)
        return PrefillWork(
            lane=self.limits.name,
            ids=sequence.spec.ids,
            start=sequence.computed,
            count=count,
            first=first,
            last=count == sequence.prompt_left,
        )

    def _decode(self) -> DecodeWork:
        rows = self.batch.sequences
        return DecodeWork(
            lane=self.limits.name,
            ids=tuple(sequence.spec.id for sequence in rows),
            past=tuple(sequence.past for sequence in rows),
        )

    def _prefilling(self, ids: tuple[int, ...]) -> Sequence:
        if self.prefilling is None or self.prefilling.spec.ids != ids:
            raise RuntimeError(f"sequences {ids} are not being prefilled: a bug")
        return self.prefilling

    def _finish(self, sequence: Sequence, now: float) -> None:
        self.rates.finished(sequence.produced, now)
        self.ledger.release(sequence.spec.id)
        sequence.end(State.FINISHED)
