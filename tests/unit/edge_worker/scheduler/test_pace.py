"""Chunks shrink as tokens get dearer and grow back."""

from __future__ import annotations

import pytest

from services.edge_worker.scheduler.pace import MIN_CHUNK_TOKENS, ChunkPace


@pytest.mark.parametrize("ms_per_token", [0.5, 1.0, 3.0])
def test_settles_near_the_aim(ms_per_token: float) -> None:
    pace = ChunkPace(64, 30.0)
    for _ in range(10):
        pace.measured(pace.tokens, pace.tokens * ms_per_token)
    assert pace.tokens == pytest.approx(min(64, 30.0 / ms_per_token), rel=0.1)


def test_never_below_what_is_worth_a_pass_nor_above_the_bound() -> None:
    pace = ChunkPace(64, 30.0)
    for _ in range(10):
        pace.measured(pace.tokens, 10_000.0)
    assert pace.tokens == MIN_CHUNK_TOKENS
    for _ in range(10):
        pace.measured(pace.tokens, 0.0)
    assert pace.tokens == 64
    assert ChunkPace(4, 30.0).tokens == 4


def test_short_rest_of_a_prompt_does_not_raise_the_pace() -> None:
    pace = ChunkPace(64, 30.0)
    pace.measured(64, 120.0)
    settled = pace.tokens
    pace.measured(3, 5.0)
    assert pace.tokens == settled


def test_without_an_aim_the_bound_holds() -> None:
    pace = ChunkPace(64, 0.0)
    pace.measured(64, 10_000.0)
    assert pace.tokens == 64
