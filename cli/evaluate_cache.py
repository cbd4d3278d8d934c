"""`tandem evaluate cache`, `tandem train cache-verifier`: the semantic cache on labelled pairs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from cli.evaluate import evaluate_app
from services.common.embedding.files import DEFAULT_DIR
from services.common.errors import TandemError
from services.common.weights.errors import ModelError

_BAD_INPUT = 2
_PAIRS = "JSON lines with `a`, `b` and `same`, gzipped or not."
_FIGURES = ("threshold", "hit_rate", "wrong_hit_share", "recall", "hits", "wrong_hits")
_EmbedderDir = Annotated[
    Path, typer.Option("--embedder-dir", help="What `make embedder` has built.")
]


@evaluate_app.command()
def cache(
    data: Annotated[Path, typer.Option("--data", help=_PAIRS)],
    train: Annotated[
        Path | None, typer.Option("--train", help="The same: a verifier is fitted on it first.")
    ] = None,
    embedder_dir: _EmbedderDir = DEFAULT_DIR,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Hit rate, wrong-hit share and recall of the semantic cache.

    Each pair counts as one question met by one stored question. With --train a verifier is
    fitted on that file, its threshold too, and measured on --data.

    Examples:

      tandem evaluate cache --data unseen.jsonl.gz

      tandem evaluate cache --data unseen.jsonl.gz --train labelled.jsonl.gz --json
    """
    from evaluation.cache_data import BadPairs, embed_pairs, read_pairs
    from evaluation.cache_report import report
    from services.common.embedding.runner import Embedder

    try:
        pairs = read_pairs(data)
        labelled = read_pairs(train) if train else None
        embedder = Embedder.load(embedder_dir)
        verifier = None
        if labelled is not None:
            from evaluation.cache_verifier import fit

            verifier = fit(embed_pairs(labelled, embedder), "evaluation", embedder)
        made = report(embed_pairs(pairs, embedder), embedder, verifier)
    except (BadPairs, TandemError, ModelError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(_BAD_INPUT) from error
    plain = _as_json(made)
    if as_json:
        typer.echo(json.dumps(plain, indent=2))
    else:
        _print(plain)


def cache_verifier(
    data: Annotated[Path, typer.Option("--data", help=_PAIRS)],
    out: Annotated[Path, typer.Option("--out", help="Folder for the verifier's two files.")],
    task: Annotated[str, typer.Option("--task", help="The task type it is for.")] = "open_question",
    embedder_dir: _EmbedderDir = DEFAULT_DIR,
) -> None:
    """Fits a verifier of the semantic cache for one task on labelled pairs.

    Name its folder in the policy, `cache.tasks.TASK.verifier_dir`. Weights do not carry over
    from one task to another.

    Example:

      tandem train cache-verifier --data labelled.jsonl.gz --out models/verifier-faq --task faq
    """
    from evaluation.cache_data import BadPairs, embed_pairs, read_pairs
    from evaluation.cache_verifier import fit
    from services.common.embedding.runner import Embedder

    try:
        pairs = read_pairs(data)
        embedder = Embedder.load(embedder_dir)
        verifier = fit(embed_pairs(pairs, embedder), task, embedder)
    except (BadPairs, TandemError, ModelError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(_BAD_INPUT) from error
    verifier.save(out)
    typer.echo(f"wrote {out}: {len(pairs)} pairs, threshold {verifier.threshold:.3f} (log-odds)")


def _as_json(made: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"pairs": made.pairs, "shipped": _point(made.shipped)}
    if made.fitted is not None:
        result["fitted"] = _point(made.fitted)
    result["guards"] = {name: _point(point) for name, point in made.guards.items()}
    result["curve"] = [{"by": by, **_point(point)} for by, point in made.curve]
    return result


def _point(point: Any) -> dict[str, Any]:
    values = asdict(point)
    return {name: values[name] for name in _FIGURES}


def _print(made: dict[str, Any]) -> None:
    table = Table("", "threshold", "hits %", "wrong % of hits", "true pairs found %", box=SIMPLE)
    rows = [("shipped", made["shipped"])]
    if "fitted" in made:
        rows.append(("fitted", made["fitted"]))
    for name, point in rows:
        table.add_row(name, *_cells(point))
    table.add_section()
    for name, point in made["guards"].items():
        table.add_row(f"guard: {name}", *_cells(point))
    table.add_section()
    for point in made["curve"]:
        table.add_row(point["by"], *_cells(point))
    console = Console()
    console.print(table)
    console.print(f"{made['pairs']} pairs; thresholds are cosines, of `fitted` log-odds")


def _cells(point: dict[str, Any]) -> tuple[str, ...]:
    shares = (f"{point[name] * 100:.2f}" for name in ("hit_rate", "wrong_hit_share", "recall"))
    return f"{point['threshold']:.3f}", *shares
