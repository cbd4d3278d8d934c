"""Input files of the analysts' commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from evaluation.rows import BadData

_BAD_INPUT = 2


@contextmanager
def bad_input() -> Iterator[None]:
    """Ends the command with exit code 2 and one sentence where its data cannot be used."""
    try:
        yield
    except BadData as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(_BAD_INPUT) from error
