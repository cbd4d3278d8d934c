"""`tandem evaluate cascade`: may the small model's answer be kept?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from cli.inputs import bad_input
from evaluation.rows import BadData

if TYPE_CHECKING:  # scikit-learn takes seconds to import; only this command needs it
    from evaluation.cascade.curve import Point
    from evaluation.cascade.data import CascadeRow
    from evaluation.cascade.fit import Verdicts
    from evaluation.cascade.measure import CascadeReport

_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)


def cascade(
    train: Annotated[
        Path,
        typer.Option("--train", help="JSON lines: question, gold, weak_samples, strong_answer."),
    ],
    test: Annotated[
        Path | None, typer.Option("--test", help="Rows to measure on; not needed with --folds.")
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option("--folds", min=2, help="Instead of --test: out of fold on --train."),
    ] = None,
    within: Annotated[
        float,
        typer.Option("--within", min=0, max=1, help="Accuracy that may be lost, as a share."),
    ] = 0.01,
    confidence: Annotated[
        float,
        typer.Option("--confidence", min=0.5, max=0.999, help="That it holds, on training rows."),
    ] = 0.85,
    seed: Annotated[int, typer.Option("--seed", help="Of the folds.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """How well a learned score tells right small answers from wrong ones, and what it saves.

    The small answer is the most frequent sample. Scorer, calibrator and threshold are fitted
    on the training rows alone.

    Examples:

      tandem evaluate cascade --train a.jsonl.gz --test b.jsonl.gz

      tandem evaluate cascade --train a.jsonl.gz --folds 5 --json
    """
    from evaluation.cascade.fit import cross_judge, fit
    from evaluation.cascade.measure import measure

    if (test is None) == (folds is None):
        raise typer.BadParameter("give either --test FILE or --folds N")
    with bad_input():
        known = _read(train)
        if test is None:
            rows, verdicts = known, cross_judge(known, folds or 2, within, confidence, seed)
        else:
            rows = _read(test)
            verdicts = fit(known, within, confidence, seed).verdicts(rows)
        report = measure(rows, verdicts)
    if as_json:
        typer.echo(json.dumps(asdict(report), indent=2))
    else:
        _print(report, verdicts)


def _read(path: Path) -> list[CascadeRow]:
    from evaluation.cascade.data import read_cascade

    rows = read_cascade(path)
    if not rows:
        raise BadData(f"{path}: no rows")
    return rows


def _print(report: CascadeReport, verdicts: Verdicts) -> None:
    console = Console()
    table = Table("", "share of equal samples", "learned, calibrated", box=SIMPLE)
    table.add_row("AUROC", f"{report.auroc_share:.3f}", f"{report.auroc:.3f}")
    table.add_row("ECE (10 bins)", f"{report.ece_before:.3f}", f"{report.ece_after:.3f}")
    table.add_row("Brier", f"{report.brier_before:.4f}", f"{report.brier_after:.4f}")
    table.add_row(
        "calibrated? p", f"{report.calibrated_p_before:.3f}", f"{report.calibrated_p:.3f}"
    )
    console.print(table)
    console.print("p below 0.05: the figures can be told from calibrated ones")
    lines = Table("escalated %", "system accuracy %", box=SIMPLE)
    for share in _SHARES:
        point = _nearest(report, share)
        lines.add_row(f"{point.escalation * 100:.1f}", f"{point.accuracy * 100:.1f}")
    console.print(lines)
    console.print(
        f"{report.rows} rows; small model right {report.weak_accuracy:.1%}, "
        f"large {report.strong_accuracy:.1%}"
    )
    console.print(
        f"[bold]at the threshold chosen in training: {report.accuracy:.1%} right, "
        f"{report.escalation:.1%} escalated[/]"
    )
    if bool(verdicts.sent.all()):
        console.print("[yellow]it escalates everything: no threshold holds the accuracy[/]")


def _nearest(report: CascadeReport, share: float) -> Point:
    return min(report.curve, key=lambda point: abs(point.escalation - share))
