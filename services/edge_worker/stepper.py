"""Runs what the scheduler planned on the runtime and draws tokens; engine thread only."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import structlog

from services.common.errors import EngineFailed, TandemError
from services.edge_worker.events import Event, FailedEvent, FinishedEvent, StartedEvent
from services.edge_worker.job import Job, Sample
from services.edge_worker.runtime.base import KvPool, Runtime
from services.edge_worker.sampling import Row, Scorer
from services.edge_worker.scheduler.lane import LaneLimits
from services.edge_worker.scheduler.plan import DecodeWork, LaneName, PrefillWork, RowMove

_log = structlog.get_logger()
_PROBE_TOKENS = 32


@dataclass(frozen=True, slots=True)
class Speed:
    """What a warm lane takes, milliseconds."""

    prefill_ms_per_token: float
    decode_ms: float


@dataclass(slots=True)
class Outcome:
    """What one step did: events in order, and sequences that are through."""

    events: list[tuple[Job, Event]] = field(default_factory=list)
    finished: set[int] = field(default_factory=set)


class Stepper:
    """Owns the pools."""

    def __init__(self, runtime: Runtime, lanes: Sequence[LaneLimits]) -> None:
        self._runtime = runtime
        self._lanes = tuple(lanes)
        self._pools: dict[LaneName, KvPool] = {}
        self._scorer = Scorer(runtime.info.vocab_size)

    def open(self) -> dict[LaneName, Speed]:
        """Makes and warms the pools; returns how fast each is."""
        for lane in self._lanes:
            pool = self._runtime.new_pool(lane.slots, lane.row_tokens)
            self._runtime.warm(pool)
            self._pools[lane.name] = pool
            _log.info("pool_ready", lane=lane.name, slots=pool.slots, bytes=pool.bytes)
        return {lane: self._measure(pool) for lane, pool in self._pools.items()}

    def move(self, moves: Sequence[RowMove]) -> None:
        """Copies rows in the given order."""
        for one in moves:
            self._runtime.copy_row(self._pools[one.lane], one.src, one.dst, one.tokens)

    def run(self, work: PrefillWork | DecodeWork, samples: Mapping[int, Sample]) -> Outcome:
        """One call of the runtime, and the tokens that it gives.

        Raises:
            Exception: Whatever the runtime raised.
        """
        outcome = Outcome()
        if isinstance(work, PrefillWork):
            self._prefill(work, [samples[one] for one in work.ids], outcome)
        else:
            self._decode(work, [samples[one] for one in work.ids], outcome)
        return outcome

    def _prefill(self, work: PrefillWork, samples: Sequence[Sample], outcome: Outcome) -> None:
        job = samples[0].job
        if work.first:
            job.started_at = time.monotonic()
            outcome.events.append((job, StartedEvent(job.started_at)))
        pool = self._pools[work.lane]
        chunk = job.prompt[work.start : work.start + work.count]
        logits = self._runtime.prefill(pool, pool.slots, chunk, work.start)
        for sample in samples if work.last else ():
            self._take(sample, logits, outcome)

    def _decode(self, work: DecodeWork, samples: Sequence[Sample], outcome: Outcome) -> None:
        tokens = np.array([one.answer.newest for one in samples], dtype=np.int64)
        past = np.array(work.past, dtype=np.int32)
        logits = self._runtime.decode(self._pools[work.lane], tokens, past)
        for sample, row in zip(samples, logits, strict=True):
            self._take(sample, row, outcome)

    def _take(self, sample: Sample, row: Row, outcome: Outcome) -> None:
        """Draws one token; what goes wrong here concerns this answer alone."""
        job, answer = sample.job, sample.answer
        try:
            delta, reason = answer.take(row, self._scorer)
        except TandemError as error:
            outcome.finished.add(sample.id)
            outcome.events.append((job, FailedEvent(error)))
            return
        except Exception:
            _log.exception("answer_failed", sequence=sample.id)
            outcome.finished.add(sample.id)
            outcome.events.append((job, FailedEvent(engine_failed())))
            return
        now = time.monotonic()
        if job.first_token_at is None:
            job.first_token_at = now
        if delta is not None:
            outcome.events.append((job, delta))
        if reason is not None:
            outcome.finished.add(sample.id)
            finished = FinishedEvent(
                reason=reason,
                output_tokens=answer.count,
                mean_logprob=answer.mean_logprob,
                min_logprob=answer.min_logprob,
                mean_margin=answer.mean_margin,
                started_at=job.started_at or now,
                first_token_at=job.first_token_at,
                at=now,
                sample=sample.index,
            )
            outcome.events.append((job, finished))

    def _measure(self, pool: KvPool) -> Speed:
        tokens = min(_PROBE_TOKENS, pool.max_tokens - 1)
        began = time.monotonic()
        self._runtime.prefill(pool, 0, [0] * tokens, 0)
        read = time.monotonic()
        self._runtime.decode(pool, np.zeros(1, np.int64), np.full(1, tokens, np.int32))
        done = time.monotonic()
        return Speed((read - began) * 1000.0 / tokens, (done - read) * 1000.0)


def engine_failed() -> EngineFailed:
    """The error of every request that the engine lost."""
    return EngineFailed("the edge engine failed while it worked on this request")
