"""`tandem ledger`: look into the ledger, and take it out as Parquet."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from cli.client import EXIT_BAD_INPUT, EXIT_UNREACHABLE
from cli.parquet import write_parquet
from services.common.errors import ConfigInvalid
from services.common.settings import load_settings
from services.router.config import RouterSettings
from services.router.ledger.sql_store import SqlLedgerStore
from services.router.ledger.store import LedgerQuery, StoreDown

ledger_app = typer.Typer(
    name="ledger", help="Look into the ledger.", no_args_is_help=True, rich_markup_mode="rich"
)
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_PAGE = 5_000

_Url = Annotated[str, typer.Option(help="Of the store; empty: the router's setting.")]
_Config = Annotated[Path, typer.Option(help="The router's settings.")]
_Since = Annotated[str, typer.Option(help="Such as 30m, 1h, 7d; empty: all.")]
_Tenant = Annotated[str, typer.Option(help="Rows of one tenant.")]
_CONFIG = Path("config/router.yaml")


@ledger_app.command()
def query(
    since: _Since = "",
    tenant: _Tenant = "",
    level: Annotated[str, typer.Option(help="Such as L0.")] = "",
    reason: Annotated[str, typer.Option(help="Such as LOW_CONFIDENCE.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="The newest so many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per row.")] = False,
    url: _Url = "",
    config: _Config = _CONFIG,
) -> None:
    """Show the newest requests, oldest first.

    Example:

      tandem ledger query --since 1h --level L3
    """
    wanted = LedgerQuery(_since(since), tenant, level.upper(), reason.upper(), limit)
    with _store(url, config) as store:
        rows = store.query(wanted)
    if as_json:
        for row in rows:
            print(json.dumps(row, ensure_ascii=False))
        return
    _show(rows)


@ledger_app.command()
def export(
    file: Annotated[Path, typer.Argument(help="A file that ends in .parquet.")],
    since: _Since = "",
    tenant: _Tenant = "",
    url: _Url = "",
    config: _Config = _CONFIG,
) -> None:
    """Write the ledger to a Parquet file, with the verdicts.

    Example:

      tandem ledger export build/ledger.parquet --since 7d
    """
    if file.suffix != ".parquet":
        _fail("FILE must end in .parquet", EXIT_BAD_INPUT)
    first = LedgerQuery(_since(since), tenant, limit=_PAGE, newest=False)
    with _store(url, config) as store:
        count = write_parquet(file, _pages(store, first))
    typer.echo(f"{file}: {count} rows")


def export_to(file: Path, url: str) -> None:
    """All rows of a store as Parquet, for the analysts' commands."""
    with _store(url, _CONFIG) as store:
        write_parquet(file, _pages(store, LedgerQuery(limit=_PAGE, newest=False)))


def _pages(store: SqlLedgerStore, first: LedgerQuery) -> Iterator[list[dict[str, Any]]]:
    """All rows, a page at a time, so that memory stays small."""
    after = None
    while rows := store.query(
        LedgerQuery(first.since, first.tenant, limit=first.limit, newest=False, after=after)
    ):
        yield rows
        after = (rows[-1]["at"], rows[-1]["row_id"])


@contextmanager
def _store(url: str, config: Path) -> Iterator[SqlLedgerStore]:
    """The store, read only; says in one sentence why it cannot be read."""
    try:
        where = url or load_settings(RouterSettings, config, "TANDEM_ROUTER").ledger_url
        store = SqlLedgerStore(where, read_only=True)
    except ConfigInvalid as error:
        _fail(error.message, EXIT_BAD_INPUT)
    try:
        yield store
    except StoreDown as error:
        _fail(f"{store.name} cannot be read: {error.message}", EXIT_UNREACHABLE)
    finally:
        store.close()


def _since(age: str) -> float:
    """Seconds since the epoch; 0 for an empty text."""
    if not age:
        return 0.0
    found = re.fullmatch(r"(\d{1,6})([smhd])", age)
    if found is None:
        _fail("--since: a number and s, m, h or d, such as 30m", EXIT_BAD_INPUT)
    return time.time() - int(found[1]) * _UNITS_S[found[2]]


def _show(rows: list[dict[str, Any]]) -> None:
    names = ("tenant", "ended", "level", "target", "reason", "fallback_type", "verdict")
    table = Table("at (UTC)", "request id", *names, "total ms", "micro USD", box=None)
    for row in rows:
        at = datetime.fromtimestamp(row["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
        figures = (f"{row['total_ms'] or 0:.0f}", str(row["cost_micro_usd"] or 0))
        table.add_row(at, row["request_id"], *(str(row[n] or "") for n in names), *figures)
    Console().print(table)


def _fail(message: str, code: int) -> NoReturn:
    typer.secho(message, fg="red", err=True)
    raise typer.Exit(code)
