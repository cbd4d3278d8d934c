"""`tandem example`: intents of a real set, from baseline over thresholds to the report."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import grpc
import typer
from rich.console import Console
from rich.progress import Progress

from cli.analysis import share, table, thresholds_at
from cli.inputs import bad_input
from cli.launch import LaunchOptions, start_edge
from cli.parquet import write_parquet
from cli.system import System
from evaluation.output import write_whole
from services.common.errors import TandemError
from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2, edge_pb2_grpc

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evaluation.example.intents import Intents
    from evaluation.example.run import Asked, Way

_PROMPT_ID = "shortlist-of-3"
_FAILED, _PATIENCE_S = 1, 60.0


def example(
    data: Annotated[Path, typer.Option("--data", help="JSON lines: split, text, intent.")],
    rows: Annotated[int, typer.Option("--rows", min=250, max=5_000, help="Rows to ask.")] = 400,
    target: Annotated[
        float, typer.Option("--target", min=0.5, max=0.99, help="Accuracy of the system.")
    ] = 0.85,
    out: Annotated[Path, typer.Option("--out", help="Folder of all that is made.")] = Path(
        "build/example"
    ),
    models_root: Annotated[
        Path, typer.Option(envvar="TANDEM_MODELS_DIR", help="Folder of the built models.")
    ] = Path("models"),
    seed: Annotated[int, typer.Option("--seed", help="Of the draw and the splits.")] = 0,
) -> None:
    """Baseline, calibration, thresholds and report on a few hundred rows, in minutes.

    The embedder finds the three nearest intents, the edge model chooses among them (`Classify`
    of a real edge worker that is started here). The cloud is a stand-in, and said to be.

    Example:

      tandem example --data banking77.jsonl.gz --rows 400
    """
    from evaluation.example.intents import read_intents
    from evaluation.example.run import (
        CLOUD_INPUT_USD,
        CLOUD_OUTPUT_USD,
        STANDIN,
        judged_rows,
    )

    with bad_input():
        intents = read_intents(data, rows, seed)
    model_id, asked = _baseline(intents, models_root, out)
    judged, thresholds = out / "judged.jsonl", out / "thresholds.yaml"
    write_whole(judged, judged_rows(asked, model_id, _PROMPT_ID))
    _step("calibrate", "--data", judged, "--out", out / "calibrations.yaml")
    goal = ("--objective", "system-accuracy", "--target", target)
    _step("sweep", "--data", judged, *goal, "--out", thresholds, "--seed", seed)
    found = _ledger(out, asked, model_id, thresholds)
    # All calls are of one size, from which no two prices can be told.
    prices = ("--input-price", CLOUD_INPUT_USD, "--output-price", CLOUD_OUTPUT_USD)
    _step("cost", "--data", out / "ledger.parquet", *prices)
    _step(
        "report", "--data", out / "ledger.parquet", "--judged", judged, *goal, "--thresholds",
        thresholds, "--note", STANDIN, "--title", "Worked example", "--out", out / "report.html",
    )  # fmt: skip
    _print(found)
    typer.echo(STANDIN)


def _step(*arguments: object) -> None:
    """One command as a user types it, with its output."""
    words = [str(one) for one in arguments]
    typer.secho(f"\n$ tandem {' '.join(words)}", fg="cyan")
    done = subprocess.run([sys.executable, "-m", "cli.main", *words], check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)


def _baseline(intents: Intents, models_root: Path, out: Path) -> tuple[str, list[Asked]]:
    """Every row through embedder and edge model; returns the edge's model id too."""
    from evaluation.example.run import ask_all
    from services.common.embedding.runner import Embedder

    try:
        embedder = Embedder.load(models_root / "use-multilingual-v3")
        with _edge(out, models_root) as classifier, Progress(transient=True) as progress:
            bar = progress.add_task("asking", total=len(intents.asked))

            def embed(texts: Sequence[str]) -> NDArray[np.float32]:
                import numpy as np

                return np.array([one.values for one in embedder.embed(list(texts))])

            asked = ask_all(intents, embed, classifier, lambda: progress.advance(bar))
            return classifier.model_id, asked
    except TandemError as error:
        typer.secho(error.message, fg="red", err=True)
        raise typer.Exit(_FAILED) from error


class _Classifier:
    """`Classify` of a running edge worker."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._stub: Any = edge_pb2_grpc.EdgeWorkerServiceStub(channel)
        self.model_id = ""

    def __call__(self, text: str, labels: Sequence[str]) -> tuple[NDArray[np.float64], float]:
        import numpy as np

        words = [label.replace("_", " ") for label in labels]
        began = time.monotonic()
        response = self._stub.Classify(
            edge_pb2.ClassifyRequest(text=text, labels=chat_pb2.Labels(values=words)),
            timeout=_PATIENCE_S,
            metadata=[("deadline_ms", str(round(_PATIENCE_S * 1000)))],
        )
        self.model_id = response.model_id
        chances = {one.label: one.probability for one in response.labels}
        took_ms = round((time.monotonic() - began) * 1000, 1)
        return np.array([chances[word] for word in words]), took_ms


@contextmanager
def _edge(out: Path, models_root: Path) -> Iterator[_Classifier]:
    """An edge worker of our own, on a free port."""
    system = System(out / "run")
    try:
        options = LaunchOptions(Path("config"), models_root, edge_port=0)
        address = system.wait_ready(start_edge(system, options))
        with grpc.insecure_channel(address) as channel:
            yield _Classifier(channel)
    finally:
        system.stop()


def _ledger(
    out: Path, asked: list[Asked], model_id: str, thresholds: Path
) -> tuple[tuple[Way, ...], float]:
    """Ledger rows under the swept threshold; and the three ways beside each other."""
    from evaluation.example.run import TASK, ledger_rows, ways

    with bad_input():
        swept = thresholds_at(thresholds)
    from_ = swept.bands(TASK, "").edges[2] if TASK in swept.tasks else 2.0
    made = ledger_rows(asked, lambda score: score >= from_, model_id, _PROMPT_ID, time.time())
    write_parquet(out / "ledger.parquet", iter([made]))
    found = ways(asked, lambda score: score >= from_)
    write_whole(out / "ways.json", json.dumps([asdict(one) for one in found], indent=2) + "\n")
    return found, from_


def _print(found: tuple[tuple[Way, ...], float]) -> None:
    lines = table("", "accuracy %", "escalated %", "USD a thousand", "mean ms")
    for way in found[0]:
        figures = (share(way.accuracy), share(way.escalation), f"{way.usd:.3f}")
        lines.add_row(way.name, *figures, f"{way.mean_ms:.0f}")
    Console().print(lines)
    kept = f"from {found[1]:.2f}" if found[1] <= 1 else "never: no threshold meets the target"
    typer.echo(f"the edge's answer is kept {kept}")
