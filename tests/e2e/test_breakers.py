"""An open breaker is reached by real requests, spares the upstream, and closes by one probe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import BURN
from tests.e2e.harness import Tandem, eventually, question

HARD = "计算三笔分期的实际年化利率 [[say:About 15.]]"
BREAKERS = "{edge: {min_calls: 100000}, cloud: {min_calls: 3, failure_share: 0.5, cool_s: 8.0}}"


@pytest.fixture(scope="module")
def tandem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    system = Tandem(
        Path(tmp_path_factory.mktemp("breakers")),
        BURN,
        cloud={
            "TANDEM_CLOUD__TIERS__SMALL__RETRY": "none",
            "TANDEM_CLOUD__TIERS__LARGE__RETRY": "none",
        },
        router={"TANDEM_ROUTER__BREAKERS": BREAKERS},
    )
    yield system
    system.close()


def test_a_failing_cloud_is_spared_and_tried_again(tandem: Tandem) -> None:
    tandem.upstream.default(status=500)
    for _ in range(3):
        result = tandem.stream(question(HARD))
        assert result.served == ("L0", "EDGE", "UPSTREAM_FAILED", "UNAVAILABLE")
    calls = len(tandem.upstream.seen())
    # The large tier's breaker is open: the small one is planned, and it fails three times too.
    reasons = {tandem.stream(question(HARD)).served[2] for _ in range(3)}
    assert reasons <= {"UPSTREAM_FAILED", "BREAKER_OPEN"}
    spared = len(tandem.upstream.seen())
    assert spared > calls
    result = tandem.stream(question(HARD))
    assert result.served == ("L0", "EDGE", "BREAKER_OPEN", "UNAVAILABLE")
    assert result.text == "About 15."
    assert len(tandem.upstream.seen()) == spared
    tandem.upstream.reset()
    eventually(
        lambda: tandem.stream(question(HARD)).served[1].startswith("CLOUD"),
        "a probe goes through",
        40,
    )
    assert tandem.stream(question(HARD)).served == ("L3", "CLOUD_LARGE", "HARD_RULE", "NONE")
