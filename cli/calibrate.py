"""`tandem calibrate`: what a score is worth."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cli.analysis import THRESHOLDS, as_yaml, share, signal_set, table, thresholds_at, warn
from cli.inputs import bad_input
from evaluation.output import write_whole

if TYPE_CHECKING:
    from evaluation.calibrate.fit import TaskCalibration

ROWS = (
    "Judged rows, JSON lines or Parquet: task, score (or signals), right, model_id, prompt_id; "
    "optional intent, cloud_right, session, id."
)
ModelId = Annotated[str, typer.Option("--model-id", help="Only rows of this model.")]
SignalSet = Annotated[
    str, typer.Option("--signals", help="What a plain score was made of, joined by +.")
]


def calibrate(
    data: Annotated[Path, typer.Option("--data", help=ROWS)],
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the `calibrations:` entries here, YAML.")
    ] = None,
    task: Annotated[str, typer.Option("--task", help="Only this task.")] = "",
    model_id: ModelId = "",
    signals: SignalSet = "logprob",
    thresholds: Annotated[
        Path, typer.Option("--thresholds", help="Whose weights make a score of signals.")
    ] = THRESHOLDS,
    seed: Annotated[int, typer.Option("--seed", help="Of folds and tests.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Fit a map from score to confidence for each task, and say how far to trust it.

    Errors after are out of fold, split by session. The map is bound to model and prompt id.

    Examples:

      tandem calibrate --data judged.jsonl --out build/calibrations.yaml

      tandem calibrate --data judged.parquet --task order_status --json
    """
    from evaluation.calibrate.fit import FOLDS, calibrate_task
    from evaluation.judged.counts import count
    from evaluation.judged.data import read_judged

    with bad_input():
        weights = thresholds_at(thresholds).weights
        judged = read_judged(data, weights, signal_set(signals), model_id)
        judged = judged.only(task) if task else judged
        counts = count(judged.frame, (1 / FOLDS,) * FOLDS, seed)
        found = [calibrate_task(name, judged.ids[name], counts[name], seed) for name in counts]
        warn(judged.warnings)
        if out is not None:
            write_whole(out, _file(data, found))
    if as_json:
        typer.echo(json.dumps([_as_json(one) for one in found], indent=2))
    else:
        for one in found:
            _print(one)


def _file(data: Path, found: list[TaskCalibration]) -> str:
    comment = f"By `tandem calibrate` from {data.name}; take these into config/thresholds.yaml."
    return as_yaml(comment, {"calibrations": [_entry(one) for one in found]})


def _entry(one: TaskCalibration) -> dict[str, Any]:
    entry = one.entry.model_dump(mode="json")
    return {**entry, "signals": sorted(entry["signals"])}


def _as_json(one: TaskCalibration) -> dict[str, Any]:
    return {**{k: v for k, v in asdict(one).items() if k != "entry"}, "entry": _entry(one)}


def _print(one: TaskCalibration) -> None:
    console = Console()
    console.print(f"[bold]{one.task}[/]: {one.rows} rows, {one.right / one.rows:.1%} right")
    console.print(f"[dim]model {one.ids.model_id}, prompt {one.ids.prompt_id}[/]", highlight=False)
    errors = table("", "score as it is", "mapped, out of fold")
    errors.add_row("ECE (10 bins)", f"{one.ece_before:.4f}", f"{one.ece_after:.4f}")
    errors.add_row("Brier", f"{one.brier_before:.4f}", f"{one.brier_after:.4f}")
    errors.add_row("calibrated? p", f"{one.calibrated_p_before:.3f}", f"{one.calibrated_p:.3f}")
    console.print(errors)
    bins = table("bin", "rows", "score %", "right %")
    for number, part in enumerate(one.bins_before, 1):
        bins.add_row(str(number), str(part.rows), share(part.expected), share(part.observed))
    console.print(bins)
    for text in _verdicts(one):
        console.print(text)


def _verdicts(one: TaskCalibration) -> list[str]:
    found = [f"rises with the score? p = {one.monotone_p:.3f} (below 0.05: it falls somewhere)"]
    if one.top_over_confident:
        found.append("[yellow]the top bin is over-confident[/]")
    if not one.entry.top_is_sound:
        found.append("[yellow]top_is_sound: false; accept_unchecked is lost[/]")
    if not one.helps:
        found.append("[yellow]the map does not lower the Brier score: leave it out[/]")
    return found
