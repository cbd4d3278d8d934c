"""Four cells with a few requests; `make chaos` runs all with two hundred each."""

from __future__ import annotations

import asyncio

from tests.chaos.__main__ import Matrix


def test_four_cells() -> None:
    run = Matrix(["smoke"], 20)
    asyncio.run(run.run())
    assert len(run.outcomes) == 4
    for outcome in run.outcomes:
        seen = [(answer.kind, answer.code, answer.why) for answer in outcome.answers]
        assert not any(answer.hung for answer in outcome.answers), seen
        assert outcome.lost == outcome.doubled == 0
        # Shares are for the full run: a slow machine must not make this one fail.
        assert all(answer.kind != "none" for answer in outcome.answers), seen
