"""`tandem train scorer`: how likely a sampled answer is right."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from cli.analysis import as_yaml
from cli.inputs import bad_input
from evaluation.output import write_whole

if TYPE_CHECKING:
    from evaluation.cascade.scorer import Trained


def train_scorer(
    data: Annotated[
        Path,
        typer.Option("--data", help="JSON lines: question, samples, and gold (or right)."),
    ],
    task: Annotated[str, typer.Option("--task", help="Task type that it judges.")],
    model_id: Annotated[str, typer.Option("--model-id", help="Model that drew the samples.")],
    prompt_id: Annotated[str, typer.Option("--prompt-id", help="Prompt under which it did.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the `scorers:` entry here, YAML.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the folds.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Learn from samples how likely the most frequent answer is right.

    The router asks it in the second signal, of this task, model and prompt alone. Figures are
    out of fold.

    Examples:

      tandem train scorer --data sampled.jsonl --task open_question --model-id m --prompt-id p
    """
    from evaluation.cascade.scorer import read_sampled
    from evaluation.cascade.scorer import train_scorer as train

    with bad_input():
        trained = train(read_sampled(data), seed)
        if out is not None:
            entry = {"task": task, "model_id": model_id, "prompt_id": prompt_id}
            write_whole(out, _file(data, entry, trained))
    if as_json:
        typer.echo(json.dumps(asdict(trained), indent=2))
    else:
        _print(trained)


def _file(data: Path, entry: dict[str, str], trained: Trained) -> str:
    comment = f"By `tandem train scorer` from {data.name}; take it into config/thresholds.yaml."
    scorer = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(trained.scorer).items()
    }
    return as_yaml(comment, {"scorers": [{**entry, **scorer}]})


def _print(trained: Trained) -> None:
    console = Console(highlight=False)
    console.print(f"{trained.rows} rows, {trained.right / trained.rows:.1%} right; out of fold:")
    console.print(f"AUROC {trained.auroc:.3f} (share of equal samples: {trained.auroc_share:.3f})")
    console.print(f"Brier {trained.brier:.4f}")
