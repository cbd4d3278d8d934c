"""`tandem train`: fits small models on labelled data."""

from __future__ import annotations

import typer

from cli.evaluate_cache import cache_verifier

train_app = typer.Typer(
    name="train",
    help="Fit a small model on labelled data.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
train_app.command("cache-verifier")(cache_verifier)


@train_app.callback()
def _train() -> None:
    """Keeps each kind of model a command of its own."""
