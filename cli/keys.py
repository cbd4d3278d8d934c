"""`tandem keys`: make API keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
import yaml

from services.common.auth.config import TENANT_NAME
from services.common.auth.keys import KEY_ID, hash_key, make_key

keys_app = typer.Typer(
    name="keys", help="Make API keys.", no_args_is_help=True, rich_markup_mode="rich"
)
_BAD_INPUT = 2


@keys_app.callback()
def _group() -> None:
    """Keeps `make` a command of its own while it is the only one."""


@keys_app.command()
def make(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Names the key in logs and limits.")],
    tenant: Annotated[str, typer.Option(help="The tenant that calls with it.")],
    file: Annotated[
        Path | None, typer.Option(help="Write a new tenants.yaml with the tenant and its key.")
    ] = None,
) -> None:
    """Print a new key, once, and the entry for `keys:` in tenants.yaml, which holds its hash."""
    if file is not None and file.exists():
        typer.echo(f"{file}: is there already; add the entry that comes without --file", err=True)
        raise typer.Exit(_BAD_INPUT)
    for value, pattern in ((key_id, KEY_ID), (tenant, TENANT_NAME)):
        if not re.fullmatch(pattern, value):
            typer.echo("ID and tenant: lower-case letters, digits, - and _, at most 63", err=True)
            raise typer.Exit(_BAD_INPUT)
    key = make_key(key_id)
    typer.echo(f"key:   {key}")
    if file is None:
        typer.echo(f'entry: - {{id: {key_id}, tenant: {tenant}, hashes: ["{hash_key(key)}"]}}')
        return
    entry = {"id": key_id, "tenant": tenant, "hashes": [hash_key(key)]}
    file.write_text(yaml.safe_dump({"tenants": [{"name": tenant}], "keys": [entry]}))
    typer.echo(f"wrote: {file}")
