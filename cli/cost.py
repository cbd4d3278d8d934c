"""`tandem cost`: what the cascade costs against the cloud alone."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from cli.analysis import share, table
from cli.inputs import bad_input
from cli.replay import LEDGER, ledger_file
from evaluation.rows import BadData

if TYPE_CHECKING:
    from evaluation.cost import BreakEven, CostReport, Prices


def cost(
    data: Annotated[str, typer.Option("--data", help=LEDGER)],
    input_price: Annotated[
        float | None,
        typer.Option("--input-price", min=0, help="USD a million input tokens."),
    ] = None,
    output_price: Annotated[
        float | None,
        typer.Option(
            "--output-price", min=0, help="The same for output; without both, by the ledger."
        ),
    ] = None,
    fixed: Annotated[
        float, typer.Option("--fixed-usd", min=0, help="The edge's fixed costs, a month.")
    ] = 0.0,
    requests: Annotated[
        float | None, typer.Option("--requests", min=0, help="A month; else as in the ledger.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Relative cost by formula and by the ledger, and from what volume on the edge pays.

    relative cost = escalation rate × (trim rate × input share + output share)

    Examples:

      tandem cost --data build/ledger.parquet

      tandem cost --data build/ledger.parquet --fixed-usd 220 --requests 500000
    """
    from evaluation.cost import break_even, cost_report

    with bad_input():
        prices = _prices(input_price, output_price)
        with ledger_file(data) as file:
            found = cost_report(file, prices)
    volume = float(found.rows) if requests is None else requests
    even = break_even(found.saved_usd_a_request, fixed, volume)
    if as_json:
        typer.echo(json.dumps({**asdict(found), "break_even": asdict(even)}, indent=2))
    else:
        _print(found, even, fixed, volume)


def _prices(first: float | None, second: float | None) -> Prices | None:
    from evaluation.cost import Prices

    if (first is None) != (second is None):
        raise BadData("--input-price and --output-price go together")
    # USD a million tokens is micro USD a token.
    return None if first is None or second is None else Prices(first, second, from_ledger=False)


def _print(found: CostReport, even: BreakEven, fixed: float, volume: float) -> None:
    console = Console()
    lines = table("of the cloud alone", "%")
    lines.add_row(
        "escalation rate × (trim rate × input share + output share)", share(found.formula)
    )
    lines.add_row("the same by the tokens of escalated requests", share(found.by_tokens))
    lines.add_row("as the ledger has it", share(found.ledger))
    console.print(lines)
    source = "by the ledger" if found.prices.from_ledger else "as given"
    console.print(
        f"escalation {share(found.escalation)} %, trim {share(found.trim)} %, input share "
        f"{share(found.input_share)} %; {found.prices.input_token:.3f} and "
        f"{found.prices.output_token:.3f} USD a million tokens in and out, {source}"
    )
    console.print(
        f"{found.rows} requests: {found.recorded_usd:.4f} USD; the cloud alone "
        f"{found.cloud_only_usd:.4f} USD"
    )
    if fixed:
        least = even.requests_a_month
        when = "never" if least is None else f"from {least:,.0f} requests a month on"
        console.print(
            f"[bold]the edge pays {when}[/]; at {volume:,.0f}: {even.usd_a_month:,.2f} USD a month"
        )
