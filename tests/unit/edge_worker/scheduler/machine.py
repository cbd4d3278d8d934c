"""A model of an engine around the scheduler, which checks every invariant as it goes."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from services.common.errors import ContextTooLong, DeadlineExceeded, InvalidField, QueueFull
from services.edge_worker.scheduler.lane import LaneLimits
from services.edge_worker.scheduler.plan import DecodeWork, LaneName, PrefillWork, RowMove
from services.edge_worker.scheduler.scheduler import Scheduler
from services.edge_worker.scheduler.sequence import SequenceSpec, State

FAR = 1e9
LANES = st.sampled_from(list(LaneName))


def limits(name: LaneName, **changes: float) -> LaneLimits:
    """A small lane."""
    values: dict[str, float] = {
        "slots": 4,
        "max_batch_size": 3,
        "row_tokens": 40,
        "pool_tokens": 90,
        "max_queue": 6,
        "max_wait_ms": 5.0,
        "prefill_chunk_tokens": 8,
        "prefill_chunk_ms": 0.0,
        "share": 0.75 if name is LaneName.SIMPLE else 0.25,
    }
    return LaneLimits(name=name, **{**values, **changes})  # type: ignore[arg-type]


class EngineModel(RuleBasedStateMachine):
    """Follows each sequence through rows, as the runtime's cache would hold it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.next_id = 0
        self.specs: dict[int, SequenceSpec] = {}
        self.lane_of: dict[int, LaneName] = {}
        self.computed: dict[int, int] = defaultdict(int)
        self.produced: dict[int, int] = defaultdict(int)
        self.rows: dict[LaneName, dict[int, int]] = {lane: {} for lane in LaneName}
        self.ended: dict[int, State] = {}
        self.asked: set[int] = set()
        self.started: dict[tuple[LaneName, str], list[int]] = defaultdict(list)

    @initialize(
        batch=st.integers(1, 4),
        chunk=st.integers(1, 12),
        pool=st.integers(40, 160),
        aim=st.sampled_from([0.0, 10.0]),
    )
    def build(self, batch: int, chunk: int, pool: int, aim: float) -> None:
        self.lanes = {
            lane: limits(
                lane,
                max_batch_size=batch,
                prefill_chunk_tokens=chunk,
                prefill_chunk_ms=aim,
                pool_tokens=pool,
            )
            for lane in LaneName
        }
        self.scheduler = Scheduler(self.lanes.values())

    @rule(
        lane=LANES,
        tenant=st.sampled_from("abc"),
        prompt=st.one_of(st.integers(1, 6), st.integers(1, 45)),
        output=st.integers(1, 12),
        life=st.sampled_from([0.05, 0.5, FAR]),
        samples=st.one_of(st.just(1), st.integers(1, 5)),
    )
    def add(
        self, lane: LaneName, tenant: str, prompt: int, output: int, life: float, samples: int
    ) -> None:
        first, *also = range(self.next_id, self.next_id + samples)
        spec = SequenceSpec(first, tenant, prompt, output, self.now + life, tuple(also))
        queued = self._queued(lane)
        try:
            self.scheduler.add(lane, spec, self.now)
        except ContextTooLong:
            row = spec.reserved_tokens > self.lanes[lane].row_tokens
            assert row or spec.reserved_tokens * samples > self.lanes[lane].pool_tokens
            return
        except InvalidField as error:
            assert error.field == "samples"
            assert samples > self.lanes[lane].max_batch_size
            return
        except QueueFull as full:
            assert queued >= self.lanes[lane].max_queue
            assert full.retry_after_ms is not None
            assert full.retry_after_ms > 0
            return
        except DeadlineExceeded:
            assert life != FAR
            return
        assert spec.reserved_tokens <= self.lanes[lane].longest_tokens
        assert queued < self.lanes[lane].max_queue
        assert samples <= self.lanes[lane].max_batch_size
        for one in spec.ids:
            self.specs[one], self.lane_of[one] = spec, lane
        self.next_id += samples

    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        if not self.next_id:
            return
        one = data.draw(st.integers(0, self.next_id - 1))
        waiting = one not in self.ended and not self._has_place(one)
        gone = self.scheduler.abort(one)
        assert gone == waiting
        # Until they run, all samples of a request leave together.
        together = (one,) if self.produced[one] else self.specs[one].ids
        if gone:
            self.ended.update(dict.fromkeys(together, State.ABORTED))
        elif one not in self.ended:
            self.asked.update(together)

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.3]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(cost_ms=st.floats(0.1, 50.0), fails=st.integers(0, 9), ends=st.integers(0, 15))
    def step(self, cost_ms: float, fails: int, ends: int) -> None:
        """One turn of the engine: one call in ten fails, `ends` has a bit for each row."""
        step = self.scheduler.next_step(self.now)
        for gone in step.ended:
            assert gone.id not in self.ended
            expected = State.ABORTED if gone.id in self.asked else State.EXPIRED
            assert gone.state is expected
            if gone.state is State.EXPIRED:
                assert self.specs[gone.id].expires_at <= self.now
            self._end(gone.id, gone.state)
        self._move(step.moves)
        assert not self.asked - set(self.ended), "an aborted sequence outlived the boundary"
        if step.work is None:
            assert step.wake_at is None or step.wake_at > self.now
            return
        self.now += cost_ms / 1000.0
        if fails == 0:
            for lost in self.scheduler.fail(step.work, cost_ms):
                self._end(lost, State.FAILED)
        elif isinstance(step.work, PrefillWork):
            self._prefill(step.work, ends, cost_ms)
        else:
            self._decode(step.work, ends, cost_ms)

    @precondition(lambda self: bool(self.next_id))
    @invariant()
    def nothing_lost_or_doubled(self) -> None:
        live = self.scheduler.live_ids()
        assert live | set(self.ended) == set(self.specs)
        assert not live & set(self.ended)

    @invariant()
    def bounds_hold(self) -> None:
        for view in self.scheduler.view(self.now) if hasattr(self, "scheduler") else ():
            lane = self.lanes[view.name]
            held = [one for one in self.computed if self._holds(one, view.name)]
            assert view.active <= lane.max_batch_size
            assert view.queued <= lane.max_queue
            assert view.kv_used_tokens <= lane.pool_tokens
            assert view.kv_used_tokens == sum(self.specs[one].reserved_tokens for one in held)
            assert view.active == len(held)
            assert view.ttft_ms >= 0
            assert sorted(self.rows[view.name]) == list(range(len(self.rows[view.name])))

    def teardown(self) -> None:
        """Without new requests everything ends: nobody starves."""
        if not hasattr(self, "scheduler"):
            return
        for _ in range(2_000):
            if not self.scheduler.live_ids():
                break
            self.now += 0.01
            self.step(1.0, 1, 0)
        assert not self.scheduler.live_ids()
        assert all(view.kv_used_tokens == 0 for view in self.scheduler.view(self.now))

    def _prefill(self, work: PrefillWork, ends: int, cost_ms: float) -> None:
        spec = self.specs[work.ids[0]]
        assert work.ids == spec.ids
        assert work.start == self.computed[spec.id]
        assert 1 <= work.count <= self.lanes[work.lane].prefill_chunk_tokens
        if work.first:
            self._fifo(work)
        finished = set()
        for place, one in enumerate(work.ids):
            self.computed[one] += work.count
            assert work.last == (self.computed[one] == spec.prompt_tokens)
            if work.last:
                self.produced[one] = 1
                if ends == 15 or spec.max_output_tokens == 1 or (place and ends >> place & 1):
                    finished.add(one)
        moves = self.scheduler.advance(work, finished, cost_ms, self.now)
        for one in finished:
            self._end(one, State.FINISHED)
        running = [one for one in work.ids if one not in finished] if work.last else []
        for one, move in zip(running, moves, strict=True):
            assert move.src == self.lanes[work.lane].slots
            assert move.dst == len(self.rows[work.lane])
            assert move.tokens == spec.prompt_tokens
            self.rows[work.lane][move.dst] = one

    def _decode(self, work: DecodeWork, ends: int, cost_ms: float) -> None:
        rows = self.rows[work.lane]
        assert work.ids == tuple(rows[row] for row in range(len(rows)))
        for one, past in zip(work.ids, work.past, strict=True):
            spec = self.specs[one]
            assert past == spec.prompt_tokens + self.produced[one] - 1
            assert past < self.lanes[work.lane].row_tokens
            self.produced[one] += 1
            assert self.produced[one] <= spec.max_output_tokens
        finished = {
            one
            for row, one in enumerate(work.ids)
            if self.produced[one] == self.specs[one].max_output_tokens or ends >> row & 1
        }
        moves = self.scheduler.advance(work, finished, cost_ms, self.now)
        for one in finished:
            self._end(one, State.FINISHED)
        self._move(moves)

    def _fifo(self, work: PrefillWork) -> None:
        tenant = self.specs[work.ids[0]].tenant
        before = self.started[work.lane, tenant]
        assert not before or before[-1] < work.ids[0], "out of order inside a tenant"
        before.extend(work.ids)

    def _move(self, moves: tuple[RowMove, ...]) -> None:
        for move in moves:
            one = self.rows[move.lane].pop(move.src)
            assert move.dst not in self.rows[move.lane]
            assert move.tokens == self.specs[one].prompt_tokens + self.produced[one] - 1
            self.rows[move.lane][move.dst] = one

    def _end(self, one: int, state: State) -> None:
        assert one not in self.ended
        self.ended[one] = state
        rows = self.rows[self.lane_of[one]]
        for row in [row for row, holder in rows.items() if holder == one]:
            del rows[row]

    def _has_place(self, one: int) -> bool:
        return one not in self.ended and any(one in ids for ids in self.started.values())

    def _holds(self, one: int, lane: LaneName) -> bool:
        return self.lane_of[one] is lane and self._has_place(one)

    def _queued(self, lane: LaneName) -> int:
        return next(v.queued for v in self.scheduler.view(self.now) if v.name is lane)
