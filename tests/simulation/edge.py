"""The edge's scheduler in virtual time: arrivals, steps with a price, callers that leave."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from services.common.errors import TandemError
from services.edge_worker.scheduler.lane import LaneLimits
from services.edge_worker.scheduler.plan import DecodeWork, LaneName, PrefillWork, RowMove
from services.edge_worker.scheduler.scheduler import Scheduler
from services.edge_worker.scheduler.sequence import SequenceSpec, State

_TENANTS = "abcdefgh"
_FULL_CHECK_STEPS = 256
# Virtual price of a call: a pass over the weights, and more for each row or token.
_PASS_MS, _ROW_MS, _TOKEN_MS = 4.0, 0.5, 0.2
_FAIL_SHARE = 0.0005
_SLOW_SHARE, _SLOW_MS = 0.001, 80.0


class Broken(AssertionError):
    """An invariant does not hold; the message has what is needed to see it again."""


def check(holds: bool, what: str, *seen: object) -> None:
    """Broken, unless it holds."""
    if not holds:
        raise Broken(f"{what}: {seen}")


def draw_lanes(rng: random.Random) -> dict[LaneName, LaneLimits]:
    """Two lanes of any sizes."""

    def lane(name: LaneName, share: float) -> LaneLimits:
        slots, row = rng.randint(1, 16), rng.choice([64, 256, 1024])
        return LaneLimits(
            name=name,
            slots=slots,
            max_batch_size=rng.randint(1, slots),
            row_tokens=row,
            pool_tokens=rng.randint(row, rng.choice([row + 1, slots * row])),
            max_queue=rng.choice([8, 64]),
            max_wait_ms=rng.choice([0.0, 5.0]),
            prefill_chunk_tokens=rng.choice([16, 64, 128]),
            prefill_chunk_ms=rng.choice([0.0, 10.0]),
            share=share,
        )

    return {
        LaneName.SIMPLE: lane(LaneName.SIMPLE, 0.75),
        LaneName.COMPLEX: lane(LaneName.COMPLEX, 0.25),
    }


@dataclass(slots=True)
class Live:
    """What the model knows of a sequence."""

    spec: SequenceSpec
    lane: LaneName
    computed: int = 0
    produced: int = 0
    placed: bool = False
    abort_asked: bool = False


@dataclass
class EdgeRun:
    """One run from one seed. `ends` counts how requests ended."""

    rng: random.Random
    requests: int
    now: float = 1_000.0
    ends: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    longest_gap_ms: float = 0.0

    def __post_init__(self) -> None:
        self.limits = draw_lanes(self.rng)
        self.scheduler = Scheduler(self.limits.values())
        self.live: dict[int, Live] = {}
        self.rows: dict[LaneName, dict[int, int]] = {lane: {} for lane in LaneName}
        self.held: Counter[LaneName] = Counter()
        self.queues: dict[tuple[LaneName, str], list[int]] = defaultdict(list)
        # Starts of each tenant since the head of another's queue became the head.
        self.passed: dict[tuple[LaneName, str], Counter[str]] = defaultdict(Counter)
        self.served_at = dict.fromkeys(LaneName, self.now)
        self.worst_cost_ms = 0.0
        self.next_id = 0
        # Offered load from a fifth to twice what the lanes can do, roughly.
        self.gap_s = self.rng.uniform(2.0, 20.0) * _PASS_MS / 1000.0

    def run(self) -> EdgeRun:
        """All requests, then until nothing is left."""
        arrivals, due = 0, self.now
        while arrivals < self.requests or self.live:
            while arrivals < self.requests and due <= self.now:
                self._arrive()
                arrivals += 1
                burst = self.rng.random() < 0.3
                due += 0.0 if burst else self.rng.expovariate(1.0 / self.gap_s)
            if self.live and self.rng.random() < 0.01:
                self._leave()
            wake = self._step()
            if wake is not None:
                following = due if arrivals < self.requests else self.now + 0.001
                self.now = max(self.now, min(following, wake))
        self._whole()
        check(not any(self.held.values()), "the pool is not empty at the end", self.held)
        return self

    def _arrive(self) -> None:
        rng = self.rng
        lane = LaneName.COMPLEX if rng.random() < 0.25 else LaneName.SIMPLE
        prompt = min(int(rng.lognormvariate(3.0, 1.0)) + 1, 1_100)
        samples = 1 if rng.random() < 0.95 else rng.randint(2, 5)
        ids = tuple(range(self.next_id, self.next_id + samples))
        life = rng.choice([0.2, 1.0, 8.0, 1e9])
        spec = SequenceSpec(
            ids[0],
            rng.choice(_TENANTS),
            prompt,
            rng.choice([1, 4, 8, 24]),
            self.now + life,
            ids[1:],
        )
        try:
            self.scheduler.add(lane, spec, self.now)
        except TandemError as error:
            self.ends[error.reason] += 1
            return
        self.next_id += samples
        for one in ids:
            self.live[one] = Live(spec, lane)
        queue = self.queues[lane, spec.tenant]
        queue.append(ids[0])
        if len(queue) == 1:
            self.passed[lane, spec.tenant] = Counter()

    def _leave(self) -> None:
        """A caller hangs up."""
        one = self.rng.choice(list(self.live)) if len(self.live) < 64 else next(iter(self.live))
        known = self.live[one]
        together = (one,) if known.produced else known.spec.ids
        gone = self.scheduler.abort(one)
        check(gone != known.placed, "abort ends at once what waits, and only that", one)
        for each in together:
            if gone:
                self._end(each, State.ABORTED)
            elif each in self.live:
                self.live[each].abort_asked = True

    def _step(self) -> float | None:
        """One turn of the engine; when to look again where there was nothing to do."""
        self.steps += 1
        if self.steps % _FULL_CHECK_STEPS == 0:
            self._whole()
        step = self.scheduler.next_step(self.now)
        for ended in step.ended:
            known = self.live[ended.id]
            wanted = State.ABORTED if known.abort_asked else State.EXPIRED
            check(ended.state is wanted, "ended otherwise than asked", ended)
            late = known.spec.expires_at <= self.now
            check(late or ended.state is State.ABORTED, "expired before its time", ended)
            self._end(ended.id, ended.state)
        self._move(step.moves)
        work = step.work
        if work is None:
            return step.wake_at if step.wake_at is not None else self.now + 3600.0
        cost_ms = self._cost_ms(work)
        self._on_time(work.lane, cost_ms)
        self.now += cost_ms / 1000.0
        if self.rng.random() < _FAIL_SHARE:
            self._place(work)
            for lost in self.scheduler.fail(work, cost_ms):
                self._end(lost, State.FAILED)
        elif isinstance(work, PrefillWork):
            self._prefill(work, cost_ms)
        else:
            self._decode(work, cost_ms)
        return None

    def _cost_ms(self, work: PrefillWork | DecodeWork) -> float:
        cost_ms = _PASS_MS
        if isinstance(work, PrefillWork):
            cost_ms += work.count * _TOKEN_MS
        else:
            cost_ms += len(work.ids) * _ROW_MS
        if self.rng.random() < _SLOW_SHARE:
            cost_ms += _SLOW_MS
        self.worst_cost_ms = max(self.worst_cost_ms, cost_ms)
        return cost_ms

    def _on_time(self, lane: LaneName, cost_ms: float) -> None:
        """No lane with running rows waits longer than fair queueing allows.

        Until its turn the other may do its weight's share of the dearest call of both, and
        end the call it is in; before a decode step the lane itself reads a chunk, and a new
        batch waits for others.
        """
        for name, limits in self.limits.items():
            if not self.rows[name]:
                self.served_at[name] = self.now
                continue
            gap_ms = (self.now - self.served_at[name]) * 1000.0
            other = next(each for each in self.limits.values() if each.name is not name)
            fair = 2.0 + other.share / limits.share
            bound_ms = limits.max_wait_ms + (fair + 1.0) * max(self.worst_cost_ms, _SLOW_MS)
            check(gap_ms <= bound_ms, f"lane {name} starves", gap_ms, bound_ms)
            self.longest_gap_ms = max(self.longest_gap_ms, gap_ms)
        self.served_at[lane] = self.now + cost_ms / 1000.0

    def _place(self, work: PrefillWork | DecodeWork) -> None:
        """A request gets its place: in its tenant's order, and nobody twice past a head."""
        if not isinstance(work, PrefillWork) or not work.first:
            return
        known = self.live[work.ids[0]]
        check(work.ids == known.spec.ids, "not the whole group", work)
        key = (work.lane, known.spec.tenant)
        check(self.queues[key][0] == work.ids[0], "out of order inside a tenant", work)
        self.queues[key].pop(0)
        for other, queue in self.queues.items():
            if queue and other[0] is work.lane and other != key:
                self.passed[other][known.spec.tenant] += 1
                check(self.passed[other][known.spec.tenant] <= 2, "a tenant is passed over", other)
        self.passed[key] = Counter()
        for one in work.ids:
            self.live[one].placed = True
        self.held[work.lane] += known.spec.group_tokens
        limits = self.limits[work.lane]
        check(self.held[work.lane] <= limits.pool_tokens, "the pool is exceeded", work)

    def _prefill(self, work: PrefillWork, cost_ms: float) -> None:
        self._place(work)
        limits, spec = self.limits[work.lane], self.live[work.ids[0]].spec
        check(1 <= work.count <= limits.prefill_chunk_tokens, "a chunk too large", work)
        check(work.start == self.live[spec.id].computed, "a chunk out of place", work)
        finished = set()
        for one in work.ids:
            known = self.live[one]
            known.computed += work.count
            check(work.last == (known.computed == spec.prompt_tokens), "not the last", work)
            if work.last:
                known.produced = 1
                if spec.max_output_tokens == 1 or self.rng.random() < 0.02:
                    finished.add(one)
        moves = self.scheduler.advance(work, finished, cost_ms, self.now)
        running = [one for one in work.ids if one not in finished] if work.last else []
        for one in finished:
            self._end(one, State.FINISHED)
        check(len(moves) == len(running), "rows for those that run on", work, moves)
        for one, move in zip(running, moves, strict=True):
            rows = self.rows[work.lane]
            check(move.src == limits.slots and move.dst == len(rows), "a wrong row", move)
            rows[move.dst] = one
        check(len(self.rows[work.lane]) <= limits.max_batch_size, "the batch is exceeded", work)

    def _decode(self, work: DecodeWork, cost_ms: float) -> None:
        rows = self.rows[work.lane]
        check(work.ids == tuple(rows[row] for row in range(len(rows))), "rows mixed up", work)
        finished = set()
        for one, past in zip(work.ids, work.past, strict=True):
            known = self.live[one]
            check(past == known.spec.prompt_tokens + known.produced - 1, "a wrong position", one)
            check(past < self.limits[work.lane].row_tokens, "past the row's end", one)
            known.produced += 1
            if known.produced == known.spec.max_output_tokens or self.rng.random() < 0.02:
                finished.add(one)
        moves = self.scheduler.advance(work, finished, cost_ms, self.now)
        for one in finished:
            self._end(one, State.FINISHED)
        self._move(moves)

    def _move(self, moves: tuple[RowMove, ...]) -> None:
        for move in moves:
            rows = self.rows[move.lane]
            one = rows.pop(move.src)
            known = self.live[one]
            check(move.dst not in rows, "a row written over", move)
            past = known.spec.prompt_tokens + known.produced - 1
            check(move.tokens == past, "a row half copied", move)
            rows[move.dst] = one

    def _end(self, one: int, state: State) -> None:
        check(one in self.live, "ended twice or never begun", one)
        known = self.live.pop(one)
        self.ends[state.name] += 1
        if known.placed:
            self.held[known.lane] -= known.spec.reserved_tokens
        else:
            queue = self.queues[known.lane, known.spec.tenant]
            if one in queue:
                if queue[0] == one:
                    self.passed[known.lane, known.spec.tenant] = Counter()
                queue.remove(one)
        rows = self.rows[known.lane]
        for row in [row for row, holder in rows.items() if holder == one]:
            del rows[row]

    def _whole(self) -> None:
        """The scheduler and the model agree about everything."""
        check(self.scheduler.live_ids() == set(self.live), "sequences lost or doubled")
        for view in self.scheduler.view(self.now):
            limits = self.limits[view.name]
            check(view.kv_used_tokens == self.held[view.name], "reserved otherwise", view)
            check(view.queued <= limits.max_queue, "the queue is exceeded", view)
            check(view.active <= limits.max_batch_size, "the batch is exceeded", view)
