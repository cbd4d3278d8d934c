"""`tandem replay`: recorded traffic through another policy."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from cli.analysis import share, signal_set, table
from cli.inputs import bad_input
from cli.ledger import export_to
from evaluation.rows import BadData
from services.common.errors import ConfigInvalid

if TYPE_CHECKING:
    from evaluation.replay.rule import ReplayPolicy
    from evaluation.replay.run import Estimate, Figures, Replay

LEDGER = "Ledger rows: Parquet of `tandem ledger export`, or sqlite:///PATH, postgresql://…"


def replay(
    policy: Annotated[Path, typer.Option("--policy", help="The policy to try.")],
    data: Annotated[str, typer.Option("--data", help=LEDGER)],
    thresholds: Annotated[
        Path | None, typer.Option("--thresholds", help="Its thresholds; else those in force.")
    ] = Path("config/thresholds.yaml"),
    signals: Annotated[
        str, typer.Option("--signals", help="What recorded scores were made of, joined by +.")
    ] = "logprob",
    rows: Annotated[
        Path | None, typer.Option("--rows", help="Write every row that differs, as Parquet.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """What another policy would have cost and got wrong, beside what was recorded.

    Decided anew are complexity bounds, routing and grey mode, bands and calibrations, on the
    recorded scores. As recorded stay hard constraints and rules, cache, breakers, latency, and
    the session's last target. Intervals are of 95 %, by session.

    Examples:

      tandem replay --policy new.yaml --data build/ledger.parquet

      tandem replay --policy new.yaml --data sqlite:///build/ledger.db --rows build/moved.parquet
    """
    from evaluation.replay.run import replay as run

    with bad_input():
        wanted = policy_at(policy, thresholds, signals)
        with ledger_file(data) as file:
            found = run(file, wanted, rows)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
    else:
        _print(found)


def policy_at(policy: Path, thresholds: Path | None, signals: str) -> ReplayPolicy:
    """The policy of a file, as far as it can be replayed.

    Raises:
        BadData: The file breaks a rule, or asks for what the ledger does not record.
    """
    from evaluation.replay.rule import ReplayPolicy
    from services.router.policy_store import load_policy

    try:
        read = load_policy(policy, thresholds).policy
    except ConfigInvalid as error:
        raise BadData(error.message) from error
    rule = read.complexity
    if rule.strategy != "classifier":
        raise BadData(f"{policy}: complexity.strategy: only classifier has recorded scores")
    if rule.grey_mode == "second_signal":
        raise BadData(f"{policy}: complexity.grey_mode: likeness to examples is not recorded")
    return ReplayPolicy(
        rule.low,
        rule.high,
        rule.hysteresis,
        rule.large_from,
        rule.routing,
        rule.grey_mode,
        read.thresholds,
        signal_set(signals),
    )


@contextmanager
def ledger_file(data: str) -> Iterator[Path]:
    """The rows as a Parquet file; those of a store are exported to one that goes again."""
    if "://" not in data:
        yield Path(data)
        return
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
        file = Path(folder) / "ledger.parquet"
        export_to(file, data)
        yield file


def _print(found: Replay) -> None:
    console = Console()
    lines = table("", "recorded", "replayed")
    old, new = found.recorded, found.replayed
    lines.add_row("cost, micro USD a request", _figure(old.cost, 1), _figure(new.cost, 1))
    for name, label in (
        ("accuracy", "accuracy %"),
        ("escalation", "answered by the cloud %"),
        ("wrong_fallback", "wrong fallback %"),
        ("missed_fallback", "missed fallback %"),
    ):
        lines.add_row(label, *(_figure(getattr(each, name), 100) for each in (old, new)))
    calls = [f"{each.cloud_calls_per_session:.2f}" for each in (old, new)]
    lines.add_row("cloud calls a session", *calls)
    for target in sorted({*old.levels, *new.levels}):
        lines.add_row(f"{target} %", *(share(each.levels.get(target, 0.0)) for each in (old, new)))
    lines.add_row("p95, ms", f"{old.p95_ms:.0f}", f"{new.p95_ms:.0f}")
    console.print(lines)
    _print_notes(console, found, old)


def _print_notes(console: Console, found: Replay, old: Figures) -> None:
    console.print(
        f"{found.rows} rows, {found.sessions} sessions; {found.decided_anew:.1%} decided anew, the "
        f"others stay; {found.imputed:.1%} had no judged edge answer: their task's mean stands in"
    )
    if old.accuracy is not None:
        console.print(
            f"accuracy from verdicts, in groups that hold {found.covered:.1%} of the rows"
        )
    for was, now, count in found.moved:
        console.print(f"{was} → {now}: {count} rows")


def _figure(value: Estimate | None, scale: float) -> str:
    if value is None:
        return "-"
    low, high = value.low * scale, value.high * scale
    return f"{value.value * scale:.2f} ({low:.2f} to {high:.2f})"
