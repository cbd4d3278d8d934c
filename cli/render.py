"""Shows answers, decisions and timings on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tandem.common.v1 import decision_pb2
from tandem.router.v1 import router_pb2


def level_of(decision: decision_pb2.Decision) -> str:
    """Such as L0."""
    return decision_pb2.Level.Name(decision.level).removeprefix("LEVEL_")


def target_of(decision: decision_pb2.Decision) -> str:
    """Such as EDGE."""
    return decision_pb2.Target.Name(decision.target).removeprefix("TARGET_")


def reason_of(decision: decision_pb2.Decision) -> str:
    """Such as TRIVIAL_RULE."""
    return decision_pb2.Reason.Name(decision.reason).removeprefix("REASON_")


def fallback_of(decision: decision_pb2.Decision) -> str:
    """Such as TIMEOUT."""
    return decision_pb2.FallbackType.Name(decision.fallback_type).removeprefix("FALLBACK_TYPE_")


def show_outcome(console: Console, outcome: router_pb2.Outcome) -> None:
    """Where it was answered, why, how long it took, what it used."""
    decision, usage, timings = outcome.decision, outcome.usage, outcome.timings
    standin = " [yellow](stand-in, not a real provider)[/]" if outcome.standin else ""
    console.print(
        f"[bold]{target_of(decision)}[/] {level_of(decision)} · {reason_of(decision)} · "
        f"fallback {fallback_of(decision)} · {escape(outcome.model_id or 'no model')}{standin}",
        highlight=False,
    )
    console.print(
        f"[dim]TTFT {timings.ttft_ms:.0f} ms · total {timings.total_ms:.0f} ms · "
        f"{usage.input_tokens} tokens in, {usage.output_tokens} out · "
        f"{usage.cost_micro_usd / 1e6:.6f} USD[/]",
        highlight=False,
    )
    if outcome.notice:
        console.print(f"[yellow]{escape(outcome.notice)}[/]", highlight=False)
    if outcome.options:
        console.print(f"[dim]You can: {escape(' · '.join(outcome.options))}[/]", highlight=False)


def show_attempts(console: Console, outcome: router_pb2.Outcome) -> None:
    """Every attempt, where there was more than one."""
    if len(outcome.attempts) < 2:
        return
    table = Table("#", "level", "target", "outcome", "ms", "cap ms", "error", box=None)
    for attempt in outcome.attempts:
        table.add_row(
            str(attempt.index),
            decision_pb2.Level.Name(attempt.level).removeprefix("LEVEL_"),
            decision_pb2.Target.Name(attempt.target).removeprefix("TARGET_"),
            decision_pb2.AttemptOutcome.Name(attempt.outcome).removeprefix("ATTEMPT_OUTCOME_"),
            str(attempt.duration_ms),
            str(attempt.cap_ms),
            attempt.error_reason,
        )
    console.print(table)
