"""The scheduler over both lanes: add, next_step, advance, fail, abort.

One step is one call of the runtime, so a lane waits at most one call of the other
one, and a caller that leaves is gone from the next step on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from services.common.errors import ContextTooLong, DeadlineExceeded, InvalidField, QueueFull
from services.edge_worker.scheduler.lane import Lane, LaneLimits
from services.edge_worker.scheduler.plan import (
    DecodeWork,
    Ended,
    LaneName,
    PrefillWork,
    RowMove,
    Step,
)
from services.edge_worker.scheduler.sequence import Sequence, SequenceSpec, State
from services.edge_worker.scheduler.share import StepShare

MIN_RETRY_MS = 10
MAX_RETRY_MS = 60_000


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane at one moment; times in milliseconds."""

    name: LaneName
    queued: int
    active: int
    slots: int
    max_queue: int
    kv_used_tokens: int
    kv_total_tokens: int
    ttft_ms: float
    tpot_ms: float
    steps: int
    rows: int
    shared_steps: int


class Scheduler:
    """Not thread-safe: the engine calls it under one lock.

    Args:
        lanes: Limits of each lane; on a tie in step share the first goes first.
    """

    def __init__(self, lanes: Iterable[LaneLimits]) -> None:
        self._lanes = {limits.name: Lane(limits) for limits in lanes}
        self._share = StepShare({name: one.limits.share for name, one in self._lanes.items()})
        self._live: dict[int, tuple[Lane, Sequence]] = {}

    def add(self, lane_name: LaneName, spec: SequenceSpec, now: float) -> None:
        """Takes a request into a lane's queue.

        Raises:
            InvalidField: More samples than the lane can run together.
            ContextTooLong: It could never run here.
            QueueFull: Too many wait; says when a place may be free.
            DeadlineExceeded: Its first token would come after its deadline.
        """
        lane = self._lanes[lane_name]
        _check_fits(lane.limits, spec)
        backlog = lane.backlog()
        if backlog.waiting >= lane.limits.max_queue:
            wait_ms = lane.rates.queue_ms(backlog, now) / max(1, backlog.waiting)
            raise QueueFull(
                f"lane {lane_name}: {backlog.waiting} requests wait already",
                retry_after_ms=round(min(max(wait_ms, MIN_RETRY_MS), MAX_RETRY_MS)),
            )
        ttft_ms = lane.rates.ttft_ms(backlog, now, spec.prompt_tokens)
        if now + ttft_ms / 1000.0 >= spec.expires_at:
            raise DeadlineExceeded(
                f"lane {lane_name}: the first token is expected in {ttft_ms:.0f} ms, "
                "after the deadline"
            )
        sequence = Sequence(spec, now)
        lane.queue.push(sequence)
        for one in sequence.group:
            self._live[one.spec.id] = (lane, one)

    def prime(
        self, lane_name: LaneName, prefill_ms_per_token: float, decode_ms: float, now: float
    ) -> None:
        """Sets what the estimates start from, as measured while warming."""
        self._lanes[lane_name].rates.prime(prefill_ms_per_token, decode_ms, now)

    def next_step(self, now: float) -> Step:
        """Drops who left or ran out of time, then picks one call of the runtime."""
        ended, moves = self._reap(now)
        chosen = self._share.pick([n for n, lane in self._lanes.items() if lane.ready(now)])
        if chosen is not None:
            work = self._lanes[chosen].plan(now)
            return Step(tuple(ended), tuple(moves), work)
        holds = [at for one in self._lanes.values() if (at := one.hold_until()) is not None]
        return Step(tuple(ended), tuple(moves), wake_at=min(holds, default=None))

    def advance(
        self,
        work: PrefillWork | DecodeWork,
        finished: Collection[int],
        cost_ms: float,
        now: float,
    ) -> tuple[RowMove, ...]:
        """Books a call that went well.

        Args:
            work: The call.
            finished: Sequences whose answer ended with the token just drawn.
            cost_ms: Time the call took, charged to the lane.
            now: Monotonic seconds.

        Returns:
            Rows to copy before the next call.
        """
        lane = self._lanes[work.lane]
        self._share.charge(work.lane, cost_ms)
        if isinstance(work, PrefillWork):
            moves = lane.prefilled(work, finished, cost_ms, now)
        else:
            moves = lane.decoded(finished, now)
        for sequence_id in finished:
            self._forget(sequence_id)
        return moves

    def fail(self, work: PrefillWork | DecodeWork, cost_ms: float) -> tuple[int, ...]:
        """The call failed: every sequence in it is lost, and nothing else."""
        self._share.charge(work.lane, cost_ms)
        ids = work.ids
        # A decode step holds every row of its lane, so no row has to move.
        self._lanes[work.lane].drop([self._live[one][1] for one in ids], State.FAILED)
        for one in ids:
            self._forget(one)
        return ids

    def abort(self, sequence_id: int) -> bool:
        """The caller left. Returns True where it was waiting and is gone at once.

        One that holds a place is gone at the next step; an unknown id is one that
        has just ended. Until they run, all samples of a request leave together.
        """
        if sequence_id not in self._live:
            return False
        lane, sequence = self._live[sequence_id]
        if sequence.state is State.WAITING:
            lane.drop(sequence.group, State.ABORTED)
            for one in sequence.group:
                self._forget(one.spec.id)
            return True
        together = sequence.group if sequence.state is State.PREFILLING else (sequence,)
        for one in together:
            one.abort_asked = True
        return False

    def view(self, now: float) -> tuple[LaneView, ...]:
        """Load of each lane."""
        return tuple(_view(lane, now) for lane in self._lanes.values())

    def live_ids(self) -> frozenset[int]:
        """Sequences that have not ended."""
        return frozenset(self._live)

    def _reap(self, now: float) -> tuple[list[Ended], list[RowMove]]:
        ended: list[Ended] = []
        moves: list[RowMove] = []
        for lane in self._lanes.values():
            aborted = [one for one in lane.holders() if one.abort_asked]
            expired = [
                one
                for group in (lane.waiting(), lane.holders())
                for one in group
                if one.spec.expires_at <= now and not one.abort_asked
            ]
            for leaving, state in ((aborted, State.ABORTED), (expired, State.EXPIRED)):
                if leaving:
                    moves += lane.drop(leaving, state)
                    ended += [Ended(one.spec.id, state) for one in leaving]
        for one in ended:
            self._forget(one.id)
        return ended, moves

    def _forget(self, sequence_id: int) -> None:
        self._live.pop(sequence_id, None)


def _check_fits(limits: LaneLimits, spec: SequenceSpec) -> None:
    if len(spec.ids) > limits.max_batch_size:
        raise InvalidField(
            "samples", f"lane {limits.name} runs at most {limits.max_batch_size} together"
        )
    if spec.reserved_tokens > limits.row_tokens or spec.group_tokens > limits.pool_tokens:
        raise ContextTooLong(
            "messages",
            f"{spec.prompt_tokens} tokens of prompt and {spec.max_output_tokens} of answer, "
            f"{len(spec.ids)} times, exceed lane {limits.name}: {limits.row_tokens} tokens "
            f"each and {limits.pool_tokens} together",
        )


def _view(lane: Lane, now: float) -> LaneView:
    return LaneView(
        name=lane.limits.name,
        queued=len(lane.queue),
        active=lane.active,
        slots=lane.limits.max_batch_size,
        max_queue=lane.limits.max_queue,
        kv_used_tokens=lane.ledger.used_tokens,
        kv_total_tokens=lane.ledger.capacity_tokens,
        ttft_ms=lane.rates.ttft_ms(lane.backlog(), now),
        tpot_ms=lane.rates.tpot_ms(now),
        steps=lane.steps,
        rows=lane.rows,
        shared_steps=lane.shared_steps,
    )
