"""Decode speed of each engine at several numbers of streams, in alternating rounds."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.edge.llama_cpp import LlamaCpp
from benchmarks.edge.ours import ask
from services.edge_worker.engine import Engine
from services.edge_worker.scheduler.lane import LaneLimits
from services.edge_worker.scheduler.plan import LaneName

STREAMS = (1, 4, 8, 16, 32)
PROMPT_TOKENS = 112
OUTPUT_TOKENS = 33  # the middle of the decoded part has a context of 128
ROW_TOKENS = 160


@dataclass(frozen=True, slots=True)
class Burst:
    """All streams asked at once; answers of `OUTPUT_TOKENS` each.

    Attributes:
        ttft_ms: Median over the streams; prompts are read one after another.
        step_ms: Times between two tokens of a stream while all of them run.
    """

    ttft_ms: float
    step_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Speed:
    """Over all rounds, for one engine at one number of streams.

    Attributes:
        tokens_per_s: Streams / median step: what a machine with other work gives.
        best_tokens_per_s: Streams / lower decile of the steps: nearly undisturbed.
        ttft_ms: Median.
        tpot_ms: Median step.
    """

    tokens_per_s: float
    best_tokens_per_s: float
    ttft_ms: float
    tpot_ms: float


RunBurst = Callable[[Sequence[Sequence[int]]], Awaitable[Burst]]


def one_lane(slots: int, row_tokens: int) -> LaneLimits:
    """A lane that takes whatever comes."""
    return LaneLimits(
        name=LaneName.SIMPLE,
        slots=slots,
        max_batch_size=slots,
        row_tokens=row_tokens,
        pool_tokens=slots * row_tokens,
        max_queue=4 * slots,
        max_wait_ms=0.0,
        prefill_chunk_tokens=128,
        prefill_chunk_ms=0.0,
        share=1.0,
    )


def burst_ours(engine: Engine) -> RunBurst:
    """Bursts on our engine."""

    async def run(prompts: Sequence[Sequence[int]]) -> Burst:
        asks = (ask(engine, LaneName.SIMPLE, one, OUTPUT_TOKENS) for one in prompts)
        answers = await asyncio.gather(*asks)
        # The last stream to start runs while all the others do, until the first ends.
        joined = max(one.token_times[0] for one in answers)
        left = min(one.token_times[-1] for one in answers)
        shared = [at for at in answers[0].token_times if joined <= at <= left]
        return Burst(statistics.median(one.ttft_ms for one in answers), _gaps_ms(shared))

    return run


def burst_peer(peer: LlamaCpp) -> RunBurst:
    """Bursts on llama.cpp: a plain loop around `llama_decode`."""

    async def run(prompts: Sequence[Sequence[int]]) -> Burst:
        peer.clear()
        began, firsts, newest = time.monotonic(), [], []
        for sequence, prompt in enumerate(prompts):
            newest.append(peer.prefill(sequence, prompt))
            firsts.append((time.monotonic() - began) * 1000.0)
        past = np.full(len(prompts), PROMPT_TOKENS)
        times = [time.monotonic()]
        tokens = np.array(newest)
        for _ in range(OUTPUT_TOKENS - 1):
            tokens = peer.decode(tokens, past)
            past += 1
            times.append(time.monotonic())
        return Burst(statistics.median(firsts), _gaps_ms(times))

    return run


def _gaps_ms(times: Sequence[float]) -> tuple[float, ...]:
    gaps = zip(times[1:], times[:-1], strict=True)
    return tuple((later - earlier) * 1000.0 for later, earlier in gaps)


async def measure(
    engines: Mapping[str, RunBurst], rounds: int, vocab: int
) -> dict[str, dict[int, Speed]]:
    """Runs every engine at every number of streams, `rounds` times, in turn."""
    rng = np.random.default_rng(1)
    bursts: dict[tuple[str, int], list[Burst]] = {}
    for _ in range(rounds):
        for streams in STREAMS:
            prompts = rng.integers(3, vocab, (streams, PROMPT_TOKENS)).tolist()
            for name, run in engines.items():
                bursts.setdefault((name, streams), []).append(await run(prompts))
    return {
        name: {streams: _speed(streams, bursts[name, streams]) for streams in STREAMS}
        for name in engines
    }


def _speed(streams: int, bursts: Sequence[Burst]) -> Speed:
    steps = [step for burst in bursts for step in burst.step_ms]
    tpot = statistics.median(steps)
    return Speed(
        tokens_per_s=streams * 1000.0 / tpot,
        best_tokens_per_s=streams * 1000.0 / float(np.quantile(steps, 0.1)),
        ttft_ms=statistics.median(burst.ttft_ms for burst in bursts),
        tpot_ms=tpot,
    )
