"""`tandem policy`: check a policy file before it is put in force."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.client import EXIT_BAD_INPUT
from services.common.errors import ConfigInvalid
from services.router.policy_store import load_policy

policy_app = typer.Typer(
    name="policy", help="Check routing policies.", no_args_is_help=True, rich_markup_mode="rich"
)


@policy_app.callback()
def group() -> None:
    """Check routing policies."""


@policy_app.command()
def check(
    file: Annotated[Path, typer.Argument(help="The policy file.")] = Path("config/policy.yaml"),
    thresholds: Annotated[
        Path | None, typer.Option("--thresholds", help="The thresholds file beside it.")
    ] = None,
) -> None:
    """Say whether a policy file would be taken, and its version.

    Exit code 0: good; 2: every value that breaks its rule is named.

    Example:

      tandem policy check config/policy.yaml --thresholds config/thresholds.yaml
    """
    try:
        loaded = load_policy(file, thresholds)
    except ConfigInvalid as error:
        typer.secho(error.message, fg="red", err=True)
        raise typer.Exit(EXIT_BAD_INPUT) from error
    tasks = len(loaded.policy.capabilities)
    typer.echo(f"{file}: good, version {loaded.version}, {tasks} task types")
