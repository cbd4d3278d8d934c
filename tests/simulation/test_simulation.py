"""Twenty thousand requests of each part; `make simulate` runs a million."""

from __future__ import annotations

import pytest

from tests.simulation.portion import portion


@pytest.mark.parametrize("part", ["edge", "router"])
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_every_invariant_holds(part: str, seed: int) -> None:
    found = portion((part, seed, 2_500))
    assert "broken" not in found, found["broken"]
    assert found["ends"].total() >= 2_500
