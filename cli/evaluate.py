"""`tandem evaluate`: measures a part of the system on labelled data."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from cli.evaluate_cascade import cascade
from cli.evaluate_routing import routing
from cli.inputs import bad_input
from evaluation.pii_cases import generate
from evaluation.pii_data import Case, read_cases
from evaluation.pii_score import Interval, Report, Score, evaluate, evaluate_entities
from services.common.pii.detector import StructuredDetector
from services.common.pii.entities import EntityDetector

evaluate_app = typer.Typer(
    name="evaluate",
    help="Measure a part of the system on labelled data.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


evaluate_app.command()(cascade)

evaluate_app.command("routing")(routing)


@evaluate_app.command()
def pii(
    data: Annotated[
        Path | None,
        typer.Option("--data", help="JSON lines with `text` and `spans`, gzipped or not."),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--generate", help="Instead of --data: so many generated texts.", min=1),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="For --generate.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Precision, recall and F2 of the detector of personal data, with its time.

    A span is found where kind and place agree (IoU of at least 0.5). Types of the data that
    the detector does not look for are counted apart.

    Examples:

      tandem evaluate pii --data labelled.jsonl.gz

      tandem evaluate pii --generate 4000 --seed 1 --json
    """
    cases = _cases(data, count, seed)
    report = evaluate(cases, StructuredDetector())
    entities = evaluate_entities(cases, EntityDetector())
    if as_json:
        apart = {kind: asdict(score) for kind, score in entities.items()}
        typer.echo(json.dumps({**_as_json(report), "entities": apart}, indent=2))
    else:
        _print(report)
        _print_entities(entities)


def _cases(data: Path | None, count: int | None, seed: int) -> list[Case]:
    if count is not None and data is None:
        return generate(count, seed)
    if data is None or count is not None:
        raise typer.BadParameter("give either --data FILE or --generate N")
    with bad_input():
        return read_cases(data)


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "texts": report.texts,
        "structured": asdict(report.structured),
        "by_type": {kind: asdict(score) for kind, score in report.by_type.items()},
        "not_detected": report.not_detected,
        "clean_texts": report.clean_texts,
        "clean_texts_with_finds": report.clean_texts_with_finds,
        "ms_per_200_chars": report.timing.p50,
        "ms_per_200_chars_p95": report.timing.p95,
    }


def _print(report: Report) -> None:
    table = Table("type", "recall %", "precision %", "F2 %", "found/false/missed", box=SIMPLE)
    for column in table.columns:
        column.no_wrap = True
    for kind, score in report.by_type.items():
        table.add_row(kind, *_row(score))
    table.add_section()
    table.add_row("structured", *_row(report.structured))
    console = Console()
    console.print(table)
    console.print("in brackets: Wilson's 95 % interval")
    console.print(
        f"{report.texts} texts; {report.clean_texts} hold nothing structured, "
        f"{report.clean_texts_with_finds} of them gave an alarm"
    )
    timing = report.timing
    console.print(f"{timing.p50:.3f} ms for 200 characters (p95 {timing.p95:.3f} ms)")
    if report.not_detected:
        names = ", ".join(f"{kind} {count}" for kind, count in report.not_detected.items())
        console.print(f"not looked for, and not counted: {names}")


def _print_entities(entities: dict[str, Score]) -> None:
    if not entities:
        return
    table = Table("by rule, apart", "recall %", "precision %", "F2 %", "counts", box=SIMPLE)
    for kind, score in entities.items():
        table.add_row(kind, *_row(score))
    Console().print(table)


def _row(score: Score) -> tuple[str, ...]:
    return (
        _share(score.recall, score.recall_interval),
        _share(score.precision, score.precision_interval),
        _share(score.f2),
        f"{score.hits}/{score.false}/{score.missed}",
    )


def _share(value: float | None, interval: Interval = None) -> str:
    if value is None:
        return "-"
    between = f" ({interval[0]:.1%}-{interval[1]:.1%})".replace("%", "") if interval else ""
    return f"{value * 100:.2f}{between}"
