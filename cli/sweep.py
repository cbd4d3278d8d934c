"""`tandem sweep`: the threshold with the least escalation that meets a target."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cli.analysis import (
    THRESHOLDS,
    as_yaml,
    between,
    pairs,
    share,
    signal_set,
    table,
    thresholds_at,
    warn,
)
from cli.calibrate import ROWS, ModelId, SignalSet
from cli.inputs import bad_input
from evaluation.objective import Objective
from evaluation.output import write_whole
from evaluation.sla import read_sla

if TYPE_CHECKING:
    from evaluation.judged.schema import Ids
    from evaluation.sweep.run import InForce, TaskSweep, Wish
    from services.common.confidence.thresholds import Thresholds

sweep_app = typer.Typer(
    name="sweep",
    help="Choose thresholds from judged rows, with stated confidence.",
    invoke_without_command=True,
    rich_markup_mode="rich",
)
_Target = Annotated[float, typer.Option("--target", min=0, max=1, help="Accuracy, a share.")]
_Objective = Annotated[Objective, typer.Option("--objective", help="What to choose for.")]
_Confidence = Annotated[
    float, typer.Option("--confidence", min=0.5, max=0.9999, help="With which the target holds.")
]
_Unseen = Annotated[
    int,
    typer.Option(
        "--unseen-rows", min=0, help="Promise what so many further rows will show; 0: the truth."
    ),
]
_Seed = Annotated[int, typer.Option("--seed", help="Of the splits.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@sweep_app.callback()
def sweep(
    context: typer.Context,
    data: Annotated[Path | None, typer.Option("--data", help=ROWS)] = None,
    objective: _Objective = Objective.ACCEPTED_ACCURACY,
    target: _Target = 0.95,
    confidence: _Confidence = 0.95,
    unseen_rows: _Unseen = 0,
    cloud_accuracy: Annotated[
        float | None,
        typer.Option("--cloud-accuracy", min=0, max=1, help="For rows without a cloud verdict."),
    ] = None,
    error_cost: Annotated[
        list[str] | None,
        typer.Option("--error-cost", help="INTENT=COST of a wrong answer; default=COST."),
    ] = None,
    cloud_cost: Annotated[float, typer.Option("--cloud-cost", min=0, help="Of one call.")] = 1.0,
    hopeless: Annotated[
        float, typer.Option("--hopeless", min=0, max=1, help="Accuracy that the low one gives up.")
    ] = 0.5,
    task: Annotated[str, typer.Option("--task", help="Only this task.")] = "",
    model_id: ModelId = "",
    signals: SignalSet = "logprob",
    thresholds: Annotated[
        Path, typer.Option("--thresholds", help="Those in force, to compare with.")
    ] = THRESHOLDS,
    sla: Annotated[
        Path | None, typer.Option("--sla", help="Each task's accuracy floor is its target.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write bands and calibrations here, YAML.")
    ] = None,
    seed: _Seed = 0,
    as_json: _Json = False,
) -> None:
    """Thresholds 0 to 1 by 0.02 for each task: curves, choice, dual thresholds, comparison.

    Sessions are split in three: to fit the calibrator, to choose, to measure. accepted-accuracy
    and system-accuracy hold with the stated confidence (Learn-then-Test, fixed sequence);
    expected-cost and knee are point estimates.

    Examples:

      tandem sweep --data judged.jsonl --target 0.95 --out build/thresholds.yaml

      tandem sweep --data judged.jsonl --sla config/sla.yaml

      tandem sweep --data judged.jsonl --objective expected-cost --error-cost billing=50
    """
    if context.invoked_subcommand is not None:
        return
    if data is None:
        raise typer.BadParameter("--data FILE is needed")
    from evaluation.judged.counts import count
    from evaluation.judged.data import read_judged
    from evaluation.sweep.points import Costs
    from evaluation.sweep.run import SHARES, Wish, sweep_task

    with bad_input():
        costs = Costs(cloud_cost, pairs(error_cost or [], "--error-cost"))
        wish = Wish(objective, target, 1 - confidence, cloud_accuracy, costs, unseen_rows, hopeless)
        now = thresholds_at(thresholds)
        judged = read_judged(data, now.weights, signal_set(signals), model_id)
        judged = judged.only(task) if task else judged
        parts = count(judged.frame, SHARES, seed)
        wishes = _wishes(wish, sla, list(parts))
        found = [
            sweep_task(name, counts, wishes[name], in_force(now, name, judged.ids[name]))
            for name, counts in parts.items()
        ]
        if out is not None:
            write_whole(out, _file(data, found, judged.ids, wish))
    warn(judged.warnings)
    if as_json:
        typer.echo(json.dumps([as_object(one) for one in found], indent=2))
    else:
        for one in found:
            _print(one, wishes[one.task])
    warn(_no_edge(found, wishes) if sla is not None else ())


def _wishes(wish: Wish, sla: Path | None, tasks: list[str]) -> dict[str, Wish]:
    """Each task's own target."""
    if sla is None:
        return dict.fromkeys(tasks, wish)
    promised = read_sla(sla)
    return {task: replace(wish, target=promised.of(task).accuracy_floor) for task in tasks}


def _no_edge(found: list[TaskSweep], wishes: dict[str, Wish]) -> list[str]:
    """What a promise that the edge cannot keep means for the policy."""
    return [
        f"{one.task}: its edge answers cannot be shown to meet the floor of "
        f'{wishes[one.task].target:.1%}: set capabilities.{one.task}.edge: "no" in policy.yaml'
        for one in found
        if one.choice.threshold is None
    ]


@sweep_app.command()
def prove(
    data: Annotated[
        Path, typer.Option("--data", help="Judged rows, or rows of a cascade (`weak_samples`).")
    ],
    objective: _Objective = Objective.SYSTEM_ACCURACY,
    target: _Target = 0.85,
    confidence: _Confidence = 0.95,
    resamplings: Annotated[int, typer.Option("--resamples", min=2, max=10_000)] = 100,
    seed: _Seed = 0,
    as_json: _Json = False,
) -> None:
    """Split the rows many times: does the chosen threshold hold on rows that it has not seen?

    Example:

      tandem sweep prove --data rows.jsonl.gz --target 0.85 --resamples 100
    """
    from evaluation.sweep.prove import prove as run
    from evaluation.sweep.run import Wish

    with bad_input():
        tallies = run(data, Wish(objective, target, 1 - confidence), resamplings, seed)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in tallies], indent=2))
        return
    lines = table("threshold chosen", "found", "held", "escalated %", "accuracy %", "least %")
    for one in tallies:
        figures = (share(one.escalation), share(one.accuracy), share(one.least_accuracy))
        lines.add_row(
            one.name, f"{one.found}/{one.resamplings}", f"{one.held}/{one.found}", *figures
        )
    Console().print(lines)
    typer.echo(f"held: on unseen rows the {objective} was at least {target:.1%}")


def in_force(now: Thresholds, task: str, ids: Ids) -> InForce:
    """The task's threshold that serves now."""
    from evaluation.sweep.run import InForce

    fitted = now.calibrator(task, ids.model_id, ids.prompt_id, signal_set(ids.signals))
    return InForce(now.bands(task, "").edges[2], fitted.curve, fitted.refused)


def as_object(one: TaskSweep) -> dict[str, Any]:
    """For JSON: with the shares that points compute."""
    return {
        "task": one.task,
        "rows": one.rows,
        "choice": asdict(one.choice),
        "bands": asdict(one.bands) if one.bands else None,
        "curve": [_point(point) for point in one.curve],
        "measured": [{**asdict(each), "point": _point(each.point)} for each in one.measured],
        "warnings": one.warnings,
    }


def _point(point: Any) -> dict[str, Any]:
    shares = ("escalation", "accepted_accuracy", "system_accuracy")
    return {**asdict(point), **{name: getattr(point, name) for name in shares}}


def _file(data: Path, found: list[TaskSweep], ids: Any, wish: Wish) -> str:
    from services.common.confidence.calibrator import Isotonic

    tasks, maps = {}, []
    for one in found:
        if one.bands is None:
            continue
        tasks[one.task] = {"judged": True, "bands": {"low": one.bands.low, "high": one.bands.high}}
        if isinstance(one.calibrator, Isotonic):
            mine = ids[one.task]
            maps.append(
                {
                    "task": one.task,
                    "model_id": mine.model_id,
                    "prompt_id": mine.prompt_id,
                    "signals": mine.signals.split("+"),
                    "scores": [round(score, 6) for score in one.calibrator.scores],
                    "values": [round(value, 6) for value in one.calibrator.values],
                    # Only `tandem calibrate` tests the top.
                    "top_is_sound": False,
                }
            )
    comment = (
        f"By `tandem sweep` from {data.name}: {wish.objective}, target {wish.target}, confidence "
        f"{1 - wish.delta:.4g}.\nTake these into config/thresholds.yaml, bands and maps together."
    )
    return as_yaml(comment, {"tasks": tasks, "calibrations": maps})


def _print(one: TaskSweep, wish: Wish) -> None:
    console = Console()
    fit, chosen, test = one.rows
    console.print(f"[bold]{one.task}[/]: {fit} rows to fit, {chosen} to choose, {test} to measure")
    lines = table(
        "threshold", "escalated %", "kept right %", "kept wrong %", "system right %", "cost"
    )
    for point in one.curve[::5]:
        lines.add_row(*_figures(point))
    console.print(lines)
    measured = table("on unseen rows", "threshold", "escalated %", "accuracy % (95 %)", "target")
    for each in one.measured:
        measured.add_row(
            each.name,
            f"{each.point.threshold:.2f}",
            share(each.point.escalation),
            share(each.accuracy) + between(each.interval),
            "held" if each.holds else "[red]missed[/]",
        )
    console.print(measured)
    console.print(_sentence(one, wish))
    warn(one.warnings)


def _figures(point: Any) -> tuple[str, ...]:
    accuracy = point.accepted_accuracy
    wrong = None if accuracy is None else 1 - accuracy
    cost = "-" if point.cost is None else f"{point.cost:.3f}"
    shares: Callable[[float | None], str] = share
    return (
        f"{point.threshold:.2f}",
        shares(point.escalation),
        shares(accuracy),
        shares(wrong),
        shares(point.system_accuracy),
        cost,
    )


def _sentence(one: TaskSweep, wish: Wish) -> str:
    if one.choice.threshold is None or one.bands is None:
        return f"[yellow]no threshold: {one.choice.why}[/]"
    certain = _certain(one, wish)
    return (
        f"[bold]accept from {one.choice.threshold:.2f}[/]: {certain}; by {one.choice.theorem}. "
        f"Low {one.bands.low:.2f}, grey zone {one.bands.grey:.1%}"
    )


def _certain(one: TaskSweep, wish: Wish) -> str:
    confidence = f"with {1 - wish.delta:.1%} confidence"
    if one.choice.p_value is not None:
        p = one.choice.p_value
        return f"{wish.objective} at least {wish.target:.1%} {confidence} (p {p:.4f})"
    bound = one.choice.bound or 0.0
    if wish.objective is Objective.EXPECTED_COST:
        return f"the least mean cost; at most {bound:.3f} {confidence}"
    return f"the knee; system accuracy at least {bound:.1%} {confidence}"
