"""Short requests beside a flood of 2,000-token prompts: in two lanes, and in one."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.edge.ours import ask, running
from services.edge_worker.app import lane_limits
from services.edge_worker.config import EdgeSettings
from services.edge_worker.engine import Engine
from services.edge_worker.runtime.base import Runtime
from services.edge_worker.scheduler.lane import LaneLimits
from services.edge_worker.scheduler.plan import LaneName

LEAST_CALLS = 300
_SHORT_TOKENS, _SHORT_OUTPUT = 64, 4
_LONG_TOKENS, _LONG_OUTPUT = 2_000, 4
_LONG_AT_ONCE = 4
_MOST_S = 90.0  # of one case: in one common lane a call takes seconds


@dataclass(frozen=True, slots=True)
class LaneResult:
    """TTFT of short requests in milliseconds, 99th percentile and median, and how many."""

    p99_ms: float
    p50_ms: float
    calls: int
    long_done: int


async def idle(runtime: Runtime, calls: int) -> LaneResult:
    """Short requests one at a time, nothing else."""
    return await _measure(runtime, _lanes(runtime), calls, flood=None)


async def flooded(runtime: Runtime, calls: int) -> LaneResult:
    """The same while the complex lane always has `_LONG_AT_ONCE` long prompts."""
    return await _measure(runtime, _lanes(runtime), calls, flood=LaneName.COMPLEX)


async def one_common_lane(runtime: Runtime, calls: int) -> LaneResult:
    """The same load in one lane that has all places of both."""
    simple, complex_ = _lanes(runtime)
    common = dataclasses.replace(
        simple,
        slots=simple.slots + complex_.slots,
        max_batch_size=simple.max_batch_size + complex_.max_batch_size,
        row_tokens=complex_.row_tokens,
        pool_tokens=simple.pool_tokens + complex_.pool_tokens,
    )
    return await _measure(runtime, [common], calls, flood=LaneName.SIMPLE)


def _lanes(runtime: Runtime) -> list[LaneLimits]:
    return list(lane_limits(EdgeSettings(), runtime.info).values())


async def _measure(
    runtime: Runtime, lanes: Sequence[LaneLimits], calls: int, flood: LaneName | None
) -> LaneResult:
    rng = np.random.default_rng(2)
    vocab = runtime.info.vocab_size
    done: list[float] = []
    async with running(runtime, lanes) as engine:
        count = _LONG_AT_ONCE if flood else 0
        floods = [
            asyncio.create_task(_flood(engine, flood or LaneName.SIMPLE, vocab, seed, done))
            for seed in range(count)
        ]
        await asyncio.sleep(0.5 if flood else 0.0)
        ttft: list[float] = []
        until = time.monotonic() + _MOST_S
        while len(ttft) < calls and time.monotonic() < until:
            prompt = rng.integers(3, vocab, _SHORT_TOKENS).tolist()
            timed = await ask(engine, LaneName.SIMPLE, prompt, _SHORT_OUTPUT)
            ttft.append(timed.ttft_ms)
        for task in floods:
            task.cancel()
        await asyncio.gather(*floods, return_exceptions=True)
    p50, p99 = np.percentile(ttft, [50, 99])
    return LaneResult(float(p99), float(p50), len(ttft), len(done))


async def _flood(engine: Engine, lane: LaneName, vocab: int, seed: int, done: list[float]) -> None:
    rng = np.random.default_rng(seed)
    while True:
        prompt = rng.integers(3, vocab, _LONG_TOKENS).tolist()
        done.append((await ask(engine, lane, prompt, _LONG_OUTPUT, "flood")).ttft_ms)
