"""`tandem report`: one page that people want to read."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.analysis import THRESHOLDS, signal_set, thresholds_at, warn
from cli.calibrate import ROWS
from cli.inputs import bad_input
from cli.replay import LEDGER, ledger_file, policy_at
from cli.sweep import as_object, in_force
from evaluation.objective import Objective
from evaluation.output import write_whole
from evaluation.rows import BadData

if TYPE_CHECKING:
    from evaluation.report.build import Findings
    from evaluation.sweep.run import Wish


def report(
    data: Annotated[str, typer.Option("--data", help=LEDGER)],
    out: Annotated[Path, typer.Option("--out", help="The page.")] = Path("build/report.html"),
    judged: Annotated[Path | None, typer.Option("--judged", help=ROWS)] = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", help="Another policy, replayed beside.")
    ] = None,
    thresholds: Annotated[Path, typer.Option("--thresholds", help="Those in force.")] = THRESHOLDS,
    objective: Annotated[Objective, typer.Option("--objective")] = Objective.ACCEPTED_ACCURACY,
    target: Annotated[float, typer.Option("--target", min=0, max=1)] = 0.95,
    confidence: Annotated[float, typer.Option("--confidence", min=0.5, max=0.9999)] = 0.95,
    signals: Annotated[str, typer.Option("--signals", help="Of recorded scores.")] = "logprob",
    note: Annotated[
        list[str] | None, typer.Option("--note", help="A line under the title; may be repeated.")
    ] = None,
    title: Annotated[str, typer.Option("--title")] = "Tandem report",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, no page.")] = False,
) -> None:
    """Cost by day and task, curves and tables, as one HTML file that needs nothing else.

    With --judged also reliability and thresholds, with --policy a replay.

    Examples:

      tandem report --data build/ledger.parquet --out build/report.html

      tandem report --data sqlite:///build/ledger.db --judged judged.jsonl --policy new.yaml
    """
    from evaluation.report.build import build
    from evaluation.sweep.run import Wish

    with bad_input():
        wish = Wish(objective, target, 1 - confidence)
        with ledger_file(data) as file:
            found = _findings(file, judged, policy, thresholds, wish, signals, tuple(note or ()))
        if not as_json:
            made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, from {data.rsplit('/', 1)[-1]}"
            write_whole(out, build(found, title, made))
    if as_json:
        typer.echo(json.dumps(_as_json(found), indent=2))
    else:
        typer.echo(f"{out}: {found.summary.total.requests} requests")


def _findings(
    file: Path,
    judged: Path | None,
    policy: Path | None,
    thresholds: Path,
    wish: Wish,
    signals: str,
    notes: tuple[str, ...],
) -> Findings:
    from evaluation.calibrate.fit import FOLDS, calibrate_task
    from evaluation.cost import cost_report
    from evaluation.judged.counts import count
    from evaluation.judged.data import read_judged
    from evaluation.replay.run import replay
    from evaluation.report.build import Findings
    from evaluation.report.summary import summarize
    from evaluation.sweep.run import SHARES, sweep_task

    summary = summarize(file)
    try:
        cost = cost_report(file, None)
    except BadData as error:  # such as: nothing was escalated, so that no price is known
        cost = None
        warn([f"no comparison with the cloud alone: {error}"])
    replayed = replay(file, policy_at(policy, thresholds, signals)) if policy else None
    if judged is None:
        return Findings(summary, cost, replayed, wish=wish, notes=notes)
    now = thresholds_at(thresholds)
    rows = read_judged(judged, now.weights, signal_set(signals))
    folds = count(rows.frame, (1 / FOLDS,) * FOLDS, 0)
    maps = tuple(calibrate_task(name, rows.ids[name], folds[name]) for name in folds)
    parts = count(rows.frame, SHARES, 0)
    sweeps = tuple(
        sweep_task(name, parts[name], wish, in_force(now, name, rows.ids[name])) for name in parts
    )
    return Findings(summary, cost, replayed, sweeps, maps, wish, notes)


def _as_json(found: Findings) -> dict[str, object]:
    return {
        "summary": asdict(found.summary),
        "cost": asdict(found.cost) if found.cost else None,
        "replay": asdict(found.replay) if found.replay else None,
        "sweeps": [as_object(one) for one in found.sweeps],
        "calibrations": [
            {key: value for key, value in asdict(one).items() if key != "entry"}
            for one in found.calibrations
        ],
        "notes": found.notes,
    }
