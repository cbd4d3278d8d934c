"""How many there are, who decides it, and what several need."""

from __future__ import annotations

from collections import Counter

import pytest

from services.common.telemetry import names
from tests.unit.deploy.rendered import NAMES, autoscalers, deployments, environment, of_kind

SHARE_STATE = ("tandem-router", "tandem-cloud")


@pytest.mark.parametrize("target", NAMES)
def test_one_autoscaler_a_deployment_and_no_number_beside_it(target: str) -> None:
    scaled = autoscalers(target)
    assert [name for name, count in Counter(name for name, _ in scaled).items() if count > 1] == []
    found = of_kind(target, "Deployment")
    for name, _ in scaled:
        assert "replicas" not in found[name]["spec"]


def test_keda_takes_the_place_of_every_hpa() -> None:
    assert of_kind("prod", "HorizontalPodAutoscaler")
    assert not of_kind("prod+keda", "HorizontalPodAutoscaler")
    assert of_kind("prod+keda", "ScaledObject").keys() == {
        f"tandem-{name}" for name in deployments("prod+keda")
    }


@pytest.mark.parametrize("target", NAMES)
def test_several_need_redis(target: str) -> None:
    most = dict(autoscalers(target))
    for name, manifest in of_kind(target, "Deployment").items():
        most.setdefault(name, manifest["spec"].get("replicas", 1))
    if all(most.get(name, 1) <= 1 for name in SHARE_STATE):
        return
    assert "tandem-redis" in of_kind(target, "Deployment")
    settings = environment(target, "cloud")
    assert settings["TANDEM_CLOUD__LIMITS__REDIS__URL_FILE"] == "/etc/tandem/redis/url"
    # What the proxy is told is what may run; it refuses more than one without Redis.
    assert int(settings["TANDEM_CLOUD__REPLICAS"]) == most["tandem-cloud"]


@pytest.mark.parametrize("target", NAMES)
def test_several_routers_share_a_ledger(target: str) -> None:
    if dict(autoscalers(target)).get("tandem-router", 1) > 1:
        assert environment(target, "router")["TANDEM_ROUTER__LEDGER_URL"].startswith("postgresql:")


@pytest.mark.parametrize("target", NAMES)
def test_autoscalers_follow_metrics_that_exist(target: str) -> None:
    served = {
        value
        for name, value in vars(names).items()
        if isinstance(value, str) and not name.startswith(("_", "SPAN_"))
    }
    known = {value.replace(".", "_") for value in served}
    for manifest in of_kind(target, "HorizontalPodAutoscaler").values():
        for metric in manifest["spec"]["metrics"]:
            assert metric["type"] == "Resource" or metric["pods"]["metric"]["name"] in known
    for manifest in of_kind(target, "ScaledObject").values():
        for trigger in manifest["spec"]["triggers"]:
            if trigger["type"] != "cpu":
                query = trigger["metadata"]["query"]
                assert query.removeprefix("sum(").removesuffix(")") in known


def test_what_prod_scales_by_is_served_there() -> None:
    (_, *more) = of_kind("prod", "HorizontalPodAutoscaler")["tandem-edge"]["spec"]["metrics"]
    assert [metric["pods"]["metric"]["name"] for metric in more] == ["tandem_edge_queue_depth"]
    assert environment("prod", "edge")["TANDEM_EDGE__TELEMETRY__METRICS_LISTEN"] == "0.0.0.0:9464"


@pytest.mark.parametrize("target", NAMES)
def test_a_drain_of_a_node_is_never_blocked(target: str) -> None:
    budgets = of_kind(target, "PodDisruptionBudget")
    assert budgets.keys() >= {f"tandem-{name}" for name in deployments(target)}
    assert all(budget["spec"]["maxUnavailable"] == 1 for budget in budgets.values())
