"""Does a greedy answer depend on who shares the batch? 200 mixed requests, together and alone.

`python -m benchmarks.edge.same [REQUESTS]`. Together, requests join and leave as they come and
every tenth is followed by one that is aborted while it runs. Where tokens differ from those of
the request alone, the gap between the two best logits there is printed, in nats.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.edge.ours import ask, running
from benchmarks.edge.throughput import one_lane
from services.edge_worker.engine import Engine
from services.edge_worker.kit.build import build_model, default_root, model_dir
from services.edge_worker.runtime.onnx import OnnxOptions, OnnxRuntime
from services.edge_worker.scheduler.plan import LaneName

_SLOTS, _ROW_TOKENS, _AT_ONCE = 16, 256, 24
_ABORT_EVERY = 10


@dataclass(frozen=True, slots=True)
class Request:
    """Prompt, and how many tokens are wanted."""

    prompt: tuple[int, ...]
    tokens: int


def mixed(count: int, vocab: int) -> list[Request]:
    """Prompts of 4 to 200 tokens, answers of 1 to 32."""
    rng = np.random.default_rng(3)
    return [
        Request(tuple(rng.integers(3, vocab, rng.integers(4, 201)).tolist()), int(tokens))
        for tokens in rng.integers(1, 33, count)
    ]


async def together(engine: Engine, requests: Sequence[Request]) -> list[Sequence[int]]:
    """All of them, `_AT_ONCE` inside the engine."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(index: int, request: Request) -> Sequence[int]:
        async with gate:
            doomed = None
            if index % _ABORT_EVERY == 0:
                call = ask(engine, LaneName.SIMPLE, request.prompt[::-1], 40)
                doomed = asyncio.create_task(call)
            answer = await ask(engine, LaneName.SIMPLE, request.prompt, request.tokens)
            if doomed is not None:
                doomed.cancel()
                await asyncio.gather(doomed, return_exceptions=True)
            return answer.tokens

    return list(await asyncio.gather(*(one(i, r) for i, r in enumerate(requests))))


async def alone(engine: Engine, requests: Sequence[Request]) -> list[Sequence[int]]:
    """One after another."""
    return [(await ask(engine, LaneName.SIMPLE, r.prompt, r.tokens)).tokens for r in requests]


def gap(runtime: OnnxRuntime, request: Request, left: Sequence[int], right: Sequence[int]) -> float:
    """Distance of the two best logits at the first token that differs."""
    at = next(i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
    row = runtime.score([*request.prompt, *left[:at]])[-1]
    second, best = np.partition(row, -2)[-2:]
    return float(best - second)


async def run(count: int) -> None:
    """Compares and prints."""
    folder = model_dir(default_root())
    build_model(folder)
    runtime = OnnxRuntime.load(folder, OnnxOptions())
    requests = mixed(count, runtime.info.vocab_size)
    async with running(runtime, [one_lane(_SLOTS, _ROW_TOKENS)]) as engine:
        batched = await together(engine, requests)
        held = engine.view()[0].kv_used_tokens
        single = await alone(engine, requests)
    gaps = [
        gap(runtime, request, a, b)
        for request, a, b in zip(requests, batched, single, strict=True)
        if list(a) != list(b)
    ]
    largest = f", largest gap of the two best logits {max(gaps):.4f} nats" if gaps else ""
    print(f"{count - len(gaps)} of {count} answers are the same together and alone{largest}; ")
    print(f"KV positions held at the end: {held}")


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
