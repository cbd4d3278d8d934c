"""Runs cells against a world: waves of callers, and the fault when they have come far enough."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.cells import Cell
from tests.chaos.faults import Fault, fault_of
from tests.chaos.load import PATIENCE_MS, Answer, Callers, Stage
from tests.chaos.world import World

# The event that a caller sees once its request is at the stage.
_SEEN = {"prefill": "decision", "stream": "chunk"}
# Share of a wave's callers that must be there.
_SHARE = 0.2
AT_ONCE = 50


@dataclass(slots=True)
class Outcome:
    """A cell that was run. `missed`: waves that ended before they reached the stage."""

    cell: Cell
    answers: list[Answer] = field(default_factory=list)
    missed: int = 0
    seconds: float = 0.0
    lost: int = 0
    doubled: int = 0


async def run_cell(
    world: World, cell: Cell, callers: Callers, requests: int, clocks: Path | None = None
) -> Outcome:
    """At least so many requests, in waves."""
    outcome, started = Outcome(cell), time.monotonic()
    while len(outcome.answers) < requests:
        at_once = min(AT_ONCE, requests - len(outcome.answers))
        prefix = f"{cell.name}-{len(outcome.answers)}-{time.monotonic_ns()}".replace(" ", "_")
        prefix = prefix.replace("%", "pct").replace(",", "")
        fault = fault_of(world, cell, clocks)
        outcome.missed += not await _wave(callers, prefix, at_once, cell, fault, outcome)
        await asyncio.to_thread(world.wait_well)
    outcome.seconds = time.monotonic() - started
    return outcome


async def _wave(
    callers: Callers, prefix: str, at_once: int, cell: Cell, fault: Fault, outcome: Outcome
) -> bool:
    stage = Stage()
    try:
        if cell.stage == "before":
            await asyncio.to_thread(fault.apply)
            outcome.answers += await callers.wave(prefix, at_once, stage)
            return True
        wave = asyncio.create_task(callers.wave(prefix, at_once, stage))
        hit = await stage.wait(_SEEN[cell.stage], max(1, int(_SHARE * at_once)), at_once)
        await asyncio.to_thread(fault.apply)
        outcome.answers += await wave
        return hit
    finally:
        await asyncio.to_thread(fault.clear)


def count_rows(world: World, outcomes: list[Outcome]) -> None:
    """Fills in what the ledger lost or doubled of what callers were answered."""
    answered = {
        answer.request_id: outcome
        for outcome in outcomes
        for answer in outcome.answers
        if answer.kind != "none"
    }
    rows = world.wait_stored(set(answered))
    for name, outcome in answered.items():
        outcome.lost += name not in rows
        # Its caller may have sent it twice, where it found its router gone.
        outcome.doubled += rows.get(name, 0) > 1 and outcome.cell.component != "router"


async def run_cells(
    world: World,
    cells: list[Cell],
    addresses: list[str],
    requests: int,
    told: Callable[[Outcome], None],
    clocks: Path | None = None,
) -> None:
    """One after the other; each outcome is told as it comes, so that a run may be cut short."""
    for cell in cells:
        callers = Callers(addresses, PATIENCE_MS if cell.healthy else 0)
        await callers.ready()
        outcome = await run_cell(world, cell, callers, requests, clocks)
        await callers.close()
        told(outcome)
