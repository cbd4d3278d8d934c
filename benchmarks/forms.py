"""Answers held to schemas by the real model: how many fit, and what holding them costs.

`python -m benchmarks.forms [REQUESTS]`, 200 by default, prints a Markdown table.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from services.common.contract import check_schema
from services.edge_worker.form import SchemaForm
from services.edge_worker.grammar import GrammarCompiler, read_vocabulary
from services.edge_worker.kit.build import build_model, default_root, model_dir
from services.edge_worker.kit.manifest import read_manifest
from services.edge_worker.tokenizer import TextTokenizer
from tandem.common.v1 import chat_pb2
from tests.fakes.schemas import random_schema
from tests.integration.edge_worker.process import Answer, Edge, edge

STREAMS = 8
MOST_TOKENS = 400
PATIENT = (("deadline_ms", "110000"),)


async def ask(worker: Edge, schema: str, gate: asyncio.Semaphore) -> Answer:
    """One request; at most `STREAMS` run."""
    async with gate:
        return await worker.ask(
            f"Make up an order as JSON that fits this schema: {schema}",
            PATIENT,
            output=chat_pb2.OutputContract(json_schema=schema),
            max_output_tokens=MOST_TOKENS,
            lane=2,
        )


async def run(folder: Path, schemas: Sequence[str]) -> tuple[list[Answer], float]:
    """All answers, and how long they took, seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        env = {"TANDEM_EDGE__RUNTIME__MODEL_DIR": str(folder)}
        async with edge(Path(scratch), env, "services.edge_worker.main") as worker:
            gate, began = asyncio.Semaphore(STREAMS), time.perf_counter()
            answers = await asyncio.gather(*(ask(worker, one, gate) for one in schemas))
            return answers, time.perf_counter() - began


def mask_times(folder: Path, schemas: Sequence[str], texts: Sequence[str]) -> list[list[float]]:
    """Microseconds of compiling, and of each mask along the answers that were given."""
    manifest = read_manifest(folder)
    path = folder / manifest.tokenizer_file
    ends = manifest.eos_ids
    compiler = GrammarCompiler(
        read_vocabulary(path.read_text(encoding="utf-8"), manifest.vocab_size, ends), ends
    )
    tokenizer = TextTokenizer.load(path)
    compiles, masks = [], []
    for schema, text in zip(schemas, texts, strict=True):
        began = time.perf_counter()
        grammar = compiler.compile(SchemaForm(schema))
        compiles.append((time.perf_counter() - began) * 1e6)
        constraint = grammar.start()
        for token in tokenizer.encode_user(text):
            began = time.perf_counter()
            constraint.allowed()
            constraint.take(token)
            masks.append((time.perf_counter() - began) * 1e6)
    return [compiles, masks]


def report(name: str, values: Sequence[float]) -> str:
    """A row: mean, median, 99th percentile, largest."""
    figures = (
        statistics.mean(values),
        statistics.median(values),
        float(np.percentile(values, 99)),
        max(values),
    )
    return f"| {name} | " + " | ".join(f"{figure:,.0f}" for figure in figures) + " |"


def main() -> None:
    """Runs and prints."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    folder = model_dir(default_root())
    build_model(folder)
    schemas = [json.dumps(random_schema(random.Random(seed))) for seed in range(count)]
    answers, seconds = asyncio.run(run(folder, schemas))
    texts = [answer.text for answer in answers]
    fit = sum(check_schema("f", s)(t) for s, t in zip(schemas, texts, strict=True))
    tokens = sum(answer.finished.usage.output_tokens for answer in answers)
    compiles, masks = mask_times(folder, schemas, texts)
    print(f"{fit} of {count} answers parse and fit; {tokens} tokens in {seconds:.1f} s\n")
    print("| microseconds | mean | median | p99 | max |\n|---|---|---|---|---|")
    print(report("compiling a schema", compiles))
    print(report("a mask and its token", masks))


if __name__ == "__main__":
    main()
