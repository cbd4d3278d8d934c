"""One system for each test module: starting three processes takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import Tandem

# 20 ms a step on both cores: slow enough to be interrupted at every stage.
# It breaks its contracts, so that the router's own check has something to find.
BURN = {
    "TANDEM_FAKE_EDGE__DECODE_MS": "20",
    "TANDEM_FAKE_EDGE__ANSWER_TOKENS": "40",
    "TANDEM_FAKE_EDGE__HOLD_FORMS": "false",
}


@pytest.fixture(scope="module")
def tandem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    system = Tandem(Path(tmp_path_factory.mktemp("tandem")), BURN)
    yield system
    system.close()


@pytest.fixture(autouse=True)
def _fresh_upstream(tandem: Tandem) -> None:
    tandem.upstream.reset()
