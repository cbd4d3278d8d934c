"""What the scheduler tells the engine to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from services.edge_worker.scheduler.sequence import State


class LaneName(StrEnum):
    """The two lanes."""

    SIMPLE = "simple"
    COMPLEX = "complex"


@dataclass(frozen=True, slots=True)
class RowMove:
    """Copy `tokens` positions of row `src` over row `dst` before the next step."""

    lane: LaneName
    src: int
    dst: int
    tokens: int


@dataclass(frozen=True, slots=True)
class PrefillWork:
    """Compute prompt tokens `[start, start + count)` of a request in the spare row.

    Attributes:
        ids: Its samples.
        first: The request has just left the queue.
        last: The prompt is whole after it, and first tokens can be drawn.
    """

    lane: LaneName
    ids: tuple[int, ...]
    start: int
    count: int
    first: bool
    last: bool


@dataclass(frozen=True, slots=True)
class DecodeWork:
    """Advance rows 0..B-1 by one token: their sequence ids and filled positions."""

    lane: LaneName
    ids: tuple[int, ...]
    past: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """A sequence that left without an answer."""

    id: int
    state: State


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the engine: at most one call of the runtime.

    Attributes:
        ended: Sequences that were dropped at this boundary.
        moves: Rows to copy before the work.
        work: The call, or None where there is nothing to do.
        wake_at: Without work: monotonic seconds at which there will be some, else None.
    """

    ended: tuple[Ended, ...] = ()
    moves: tuple[RowMove, ...] = ()
    work: PrefillWork | DecodeWork | None = None
    wake_at: float | None = None
