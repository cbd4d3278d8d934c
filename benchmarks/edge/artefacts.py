"""Decode speed of built models side by side, by CPU time of one thread.

`python -m benchmarks.edge.artefacts FOLDER...` prints tokens for each second of CPU, the best
of twelve steps, models in turn. Unlike wall time it hardly changes on a machine with other
work, so it tells artefacts apart there; it says nothing of how well threads share the work.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.edge.throughput import STREAMS
from services.edge_worker.runtime.onnx import OnnxOptions, OnnxRuntime
from services.edge_worker.runtime.pool import OnnxPool

_REPEATS = 12
_CONTEXT_TOKENS = 128


def best_ms(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Least CPU milliseconds of each call, in turn."""
    spent: list[list[float]] = [[] for _ in calls]
    for _ in range(_REPEATS):
        for one, call in zip(spent, calls, strict=True):
            began = time.process_time()
            call()
            one.append((time.process_time() - began) * 1000.0)
    return [min(one) for one in spent]


def step(runtime: OnnxRuntime, pool: OnnxPool, streams: int) -> Callable[[], object]:
    """A decode step of `streams` rows with `_CONTEXT_TOKENS` before them."""
    tokens, past = np.ones(streams, np.int64), np.full(streams, _CONTEXT_TOKENS, np.int32)
    return lambda: runtime.decode(pool, tokens, past)


def main() -> None:
    """Prints a Markdown table."""
    folders = [Path(one) for one in sys.argv[1:]]
    opened = [OnnxRuntime.load(folder, OnnxOptions(threads=1)) for folder in folders]
    pools = [one.new_pool(max(STREAMS), 2 * _CONTEXT_TOKENS) for one in opened]
    pairs = list(zip(opened, pools, strict=True))
    print("| tokens per CPU second | " + " | ".join(one.info.model_id for one in opened) + " |")
    print("|---|" + "---|" * len(opened))
    for streams in STREAMS:
        times = best_ms([step(runtime, pool, streams) for runtime, pool in pairs])
        cells = " | ".join(f"{streams * 1000.0 / ms:.0f}" for ms in times)
        print(f"| {streams} streams | {cells} |", flush=True)
    prompt = np.random.default_rng(0).integers(3, 40_000, _CONTEXT_TOKENS).tolist()
    times = best_ms([lambda r=r, p=p: r.prefill(p, 0, prompt, 0) for r, p in pairs])  # type: ignore[misc]
    print(f"| prefill of {_CONTEXT_TOKENS} | ", end="")
    print(" | ".join(f"{_CONTEXT_TOKENS * 1000.0 / ms:.0f}" for ms in times) + " |")


if __name__ == "__main__":
    main()
