"""`tandem drift`: do the thresholds still stand on what they were made from?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.analysis import share, signal_set, table, warn
from cli.calibrate import ROWS
from cli.inputs import bad_input
from evaluation.rows import BadData

_DRIFT = 1


def drift(
    reference: Annotated[
        Path, typer.Option("--reference", help="The rows that thresholds were made from.")
    ],
    data: Annotated[Path, typer.Option("--data", help=f"New rows. {ROWS}")],
    signals: Annotated[str, typer.Option("--signals", help="Of plain scores.")] = "logprob",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Score and outcome drift for each task; made for a weekly job.

    Exit code 0: stable, or to be watched; 1: drift; 2: the rows cannot be used, such as rows of
    another model, for which these thresholds do not hold.

    Example:

      tandem drift --reference judged.jsonl --data this-week.jsonl
    """
    from evaluation.drift import drift as compare
    from evaluation.judged.counts import count
    from evaluation.judged.data import read_judged

    with bad_input():
        old, new = (read_judged(file, None, signal_set(signals)) for file in (reference, data))
        for task, ids in new.ids.items():
            if task in old.ids and old.ids[task] != ids:
                raise BadData(
                    f"{data}: task {task!r} has {ids.described(old.ids[task])}, the reference has "
                    f"{old.ids[task].described(ids)}: calibrate and sweep anew"
                )
        then, now = (count(one.frame, (1.0,), 0) for one in (old, new))
        found = [compare(task, then[task], now[task]) for task in now if task in then]
        if not found:
            raise BadData(f"{data}: no task of the reference")
    warn([f"task {task!r} is new: nothing to compare with" for task in now if task not in then])
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=2))
    else:
        lines = table("task", "PSI", "by chance", "ECE", "accuracy %", "verdict")
        for one in found:
            lines.add_row(
                one.task,
                f"{one.psi:.3f}",
                f"{one.psi_noise:.3f}",
                f"{one.ece_then:.3f} → {one.ece_now:.3f}",
                f"{share(one.accuracy_then)} → {share(one.accuracy_now)}",
                "; ".join((one.verdict, *one.why)),
            )
        Console().print(lines)
    if any(one.verdict == "drift" for one in found):
        raise typer.Exit(_DRIFT)
