"""The rows of a lane that decode together: always 0..B-1 without gaps."""

from __future__ import annotations

from collections.abc import Iterable

from services.edge_worker.scheduler.plan import LaneName, RowMove
from services.edge_worker.scheduler.sequence import Sequence


class Batch:
    """Running sequences by row; the row that leaves is filled by the last one."""

    def __init__(self, lane: LaneName, slots: int) -> None:
        self._lane = lane
        self._spare = slots
        self._rows: list[Sequence] = []

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def sequences(self) -> tuple[Sequence, ...]:
        """Sequences by row."""
        return tuple(self._rows)

    def join(self, sequence: Sequence) -> RowMove:
        """Takes in a sequence whose prompt lies in the spare row."""
        row = len(self._rows)
        move = RowMove(self._lane, self._spare, row, sequence.past)
        self._rows.append(sequence)
        sequence.join(row)
        return move

    def leave(self, leaving: Iterable[Sequence]) -> tuple[RowMove, ...]:
        """Takes out sequences, before their state changes.

        From the highest row down, so that the last row never leaves itself after it
        was moved: each survivor moves at most once.
        """
        moves = []
        for sequence in sorted(leaving, key=lambda one: one.row, reverse=True):
            last = self._rows.pop()
            if last is not sequence:
                self._rows[sequence.row] = last
                moves.append(RowMove(self._lane, last.row, sequence.row, last.past))
                last.move(sequence.row)
        return tuple(moves)
