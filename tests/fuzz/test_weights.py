"""Damaged GGUF files: refused with an error of the kit, and soon."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.weights.errors import ModelError
from services.edge_worker.kit.weights import read_weights
from tests.fuzz.effort import EFFORT, damaged
from tests.unit.edge_worker.kit import tiny

# Magic, version, counts, metadata and tensor infos of the tiny file.
HEADER_BYTES = 4_000


@pytest.mark.timeout(600)
def test_damaged_headers_are_refused_or_read(tmp_path: Path) -> None:
    good = tiny.write_gguf(tmp_path / "tiny.gguf").read_bytes()

    @EFFORT
    @given(seed=st.integers(0, 2**63))
    def look(seed: int) -> None:
        bad = tmp_path / "bad.gguf"
        bad.write_bytes(damaged(good, seed, within=HEADER_BYTES))
        try:
            weights = read_weights(bad)
        except ModelError:
            return
        assert weights.config.layers >= 1

    look()
