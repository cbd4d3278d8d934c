"""The router's own limits: calls of a tenant, channels that are shed, money that runs out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.e2e.conftest import BURN
from tests.e2e.harness import Result, Tandem, eventually, question

TENANTS = """
tenants:
- {name: local, max_concurrent_calls: 2, daily_ceiling_usd: 0.00005}
anonymous: local
roles: {caller: ["*"]}
"""
HARD = "计算三笔分期的实际年化利率 [[say:About 15.]]"


@pytest.fixture(scope="module")
def tandem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    folder = Path(tmp_path_factory.mktemp("limits"))
    (folder / "tenants.yaml").write_text(TENANTS, encoding="utf-8")
    system = Tandem(
        folder,
        BURN,
        router={
            "TANDEM_ROUTER__TENANTS_FILE": str(folder / "tenants.yaml"),
            "TANDEM_ROUTER__LOAD": "{shed_from: 1, low_priority_channels: [batch]}",
        },
    )
    yield system
    system.close()


def test_a_tenant_beyond_its_calls_is_told_when_to_come_back(tandem: Tandem) -> None:
    results: list[Result] = []
    askers = [
        threading.Thread(target=lambda: results.append(tandem.stream(question("tell me more"))))
        for _ in range(6)
    ]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    codes = [result.code for result in results]
    assert codes.count(grpc.StatusCode.OK) >= 2
    refused = [r for r in results if r.code is grpc.StatusCode.RESOURCE_EXHAUSTED]
    assert refused
    assert len(refused) + codes.count(grpc.StatusCode.OK) == 6
    assert "2 calls of this tenant" in refused[0].details


def test_a_low_priority_channel_is_shed_while_others_are_served(tandem: Tandem) -> None:
    first: list[Result] = []
    busy = threading.Thread(target=lambda: first.append(tandem.stream(question("tell me more"))))
    busy.start()
    eventually(lambda: sum(lane.active for lane in tandem.lanes()) > 0, "a call under way")
    shed = tandem.stream(question("hello", channel="batch"))
    busy.join()
    assert shed.served == ("L4", "FALLBACK", "LOAD_SHED", "UNAVAILABLE")
    assert list(shed.outcome.options)
    assert first[0].served[1] == "EDGE"


def test_the_tier_is_lowered_as_the_money_runs_out_and_the_edge_still_answers(
    tandem: Tandem,
) -> None:
    seen = []
    for _ in range(40):
        result = tandem.stream(question(HARD))
        seen.append(result.served[1:3])
        if seen[-1] == ("EDGE", "COST_CEILING"):
            break
    assert seen[0] == ("CLOUD_LARGE", "HARD_RULE")
    assert seen[-1] == ("EDGE", "COST_CEILING")
    order = [target for target, _ in seen]
    assert order == sorted(order, key=["CLOUD_LARGE", "CLOUD_SMALL", "EDGE"].index)
