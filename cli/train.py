"""`tandem train`: small models from labelled rows."""

from __future__ import annotations

import typer

from cli.evaluate_routing import train_complexity

train_app = typer.Typer(
    name="train",
    help="Train a small model from labelled rows.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
train_app.command("complexity")(train_complexity)


@train_app.callback()
def _train() -> None:
    """Keeps `complexity` a command of its own while there is only one."""
