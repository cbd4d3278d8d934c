"""`tandem evaluate routing` and `tandem train complexity`: predictive routing on labelled rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from evaluation.routing_score import NoGain
from evaluation.rows import BadData
from services.common.embedding.files import DEFAULT_DIR
from services.common.weights.errors import ModelError

if TYPE_CHECKING:  # scikit-learn takes seconds to import; only these commands need it
    from evaluation.complexity.routing import Figures, RoutingReport

_BAD_INPUT = 2
# Ong et al., RouteLLM, arXiv 2406.18665: the best APGR there, for comparison.
_PUBLISHED = {"MMLU": 0.603, "GSM8K": 0.622}

EmbedderOption = Annotated[
    Path, typer.Option("--embedder", help="Folder that `make embedder` has built.")
]


def routing(
    train_file: Annotated[
        Path, typer.Option("--train", help="Rows to learn from: JSON lines, gzipped or not.")
    ],
    test_file: Annotated[Path, typer.Option("--test", help="Other rows, to measure on.")],
    embedder: EmbedderOption = DEFAULT_DIR,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """APGR, CPT(50) and CPT(80) of the complexity model, beside baselines.

    Rows hold `prompt`, `weak_correct` and `strong_correct`; a `subject` is used by a baseline
    alone. The model is trained as `tandem train complexity` does and asked prompt by prompt,
    as the router does.

    Example:

      tandem evaluate routing --train part.jsonl.gz --test rest.jsonl.gz --json
    """
    from evaluation.complexity.routing import evaluate_routing
    from evaluation.routing_data import read_rows
    from services.common.embedding.runner import Embedder

    with _errors():
        report = evaluate_routing(
            read_rows(train_file), read_rows(test_file), Embedder.load(embedder)
        )
    if as_json:
        typer.echo(json.dumps(_as_json(report), indent=2))
    else:
        _print(report)


def train_complexity(
    data: Annotated[
        list[Path], typer.Option("--data", help="Rows to learn from; may be given several times.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the model.")],
    embedder: EmbedderOption = DEFAULT_DIR,
) -> None:
    """Train the complexity model from (prompt, weak_correct, strong_correct).

    The folder is named to the router as `complexity_dir`. The model is bound to the embedder
    and to a hash of the rows; no text of them is kept in it.

    Example:

      tandem train complexity --data rows.jsonl --out models/complexity
    """
    from evaluation.complexity.train import train
    from evaluation.routing_data import read_rows
    from services.common.embedding.runner import Embedder

    with _errors():
        rows = [row for path in data for row in read_rows(path)]
        train(rows, Embedder.load(embedder), out, name=out.name)
    typer.echo(f"trained on {len(rows)} rows: {out}")


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (BadData, NoGain, ModelError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(_BAD_INPUT) from error


def _as_json(report: RoutingReport) -> dict[str, Any]:
    return {
        **asdict(report.ours),
        "ms_per_decision": report.timing.short_p50,
        "ms_per_decision_long_p95": report.timing.long_p95,
        "train_rows": report.train_rows,
        "test_rows": report.test_rows,
        "baselines": {name: asdict(figures) for name, figures in report.baselines.items()},
        "traps": list(report.traps),
    }


def _print(report: RoutingReport) -> None:
    table = Table("ranked by", "APGR", "CPT(50) %", "CPT(80) %", box=SIMPLE)
    table.add_row("complexity model", *_row(report.ours))
    table.add_section()
    for name, figures in report.baselines.items():
        table.add_row(name, *_row(figures))
    console = Console()
    console.print(table)
    console.print(f"trained on {report.train_rows} rows, measured on {report.test_rows} others")
    published = ", ".join(f"{name} {value}" for name, value in _PUBLISHED.items())
    console.print(f"published best (RouteLLM, on the whole sets): {published}")
    for trap in report.traps:
        console.print(f"trap: {trap}")
    timing = report.timing
    if timing.short_p50 is not None:
        console.print(f"{timing.short_p50:.2f} ms a decision (p50, up to 128 tokens, one core)")
    if timing.long_p95 is not None:
        console.print(f"{timing.long_p95:.2f} ms (p95 of longer prompts)")


def _row(figures: Figures) -> tuple[str, str, str]:
    return f"{figures.apgr:.4f}", f"{figures.cpt50 * 100:.1f}", f"{figures.cpt80 * 100:.1f}"
