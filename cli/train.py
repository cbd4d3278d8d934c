"""`tandem train`: small models from labelled rows."""

from __future__ import annotations

import typer

from cli.evaluate_cache import cache_verifier
from cli.evaluate_routing import train_complexity
from cli.train_scorer import train_scorer

train_app = typer.Typer(
    name="train",
    help="Train a small model from labelled rows.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
train_app.command("complexity")(train_complexity)
train_app.command("cache-verifier")(cache_verifier)
train_app.command("scorer")(train_scorer)
