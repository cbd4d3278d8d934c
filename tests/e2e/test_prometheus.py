"""A real Prometheus scrapes three real processes; real faults make its alerts fire."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.system import Child
from tests.e2e.conftest import BURN
from tests.e2e.harness import Tandem, eventually, question
from tests.tools.declared_metrics import declared, series
from tests.tools.prometheus_server import PrometheusServer, prometheus_tool
from tests.unit.deploy.test_metrics import LABELS

RULES = Path("deploy/prometheus/rules.yaml")
LISTEN = "127.0.0.1:0"
FIRES_S = 20.0


@pytest.fixture(scope="module")
def tandem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    breaker = "{min_calls: 3, failure_share: 0.5, cool_s: 60}"
    system = Tandem(
        Path(tmp_path_factory.mktemp("scraped")),
        {**BURN, "TANDEM_EDGE__TELEMETRY__METRICS_LISTEN": LISTEN},
        cloud={
            "TANDEM_CLOUD__TELEMETRY__METRICS_LISTEN": LISTEN,
            "TANDEM_CLOUD__TIERS__SMALL__BREAKER": breaker,
            "TANDEM_CLOUD__TIERS__SMALL__RETRY_STEPS_MS": "[1]",
        },
        router={"TANDEM_ROUTER__TELEMETRY__METRICS_LISTEN": LISTEN},
    )
    yield system
    system.close()


def metrics_address(child: Child) -> str:
    return str(json.loads(child.ready_file.read_text())["metrics_address"])


@pytest.fixture(scope="module")
def prometheus(
    tandem: Tandem, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrometheusServer]:
    rules = Path(tmp_path_factory.mktemp("rules")) / "rules.yaml"
    # The rules as shipped, but for how long a fault must last.
    rules.write_text(re.sub(r"for: \w+", "for: 1s", RULES.read_text(encoding="utf-8")))
    targets = {
        f"tandem-{child.name}": metrics_address(child)
        for child in (tandem.router, tandem.edge, tandem.cloud)
    }
    with PrometheusServer(targets, rules) as server:
        yield server


def ask(tandem: Tandem) -> None:
    """One request that escalates from the edge to the small tier."""
    request = question("tell me about the zebra [[say:wrong]]", session_id="s")
    request.output.labels.values.extend(["refund", "complaint"])
    tandem.stream(request)


def fires(prometheus: PrometheusServer, **labels: str) -> None:
    def found() -> bool:
        return any(labels.items() <= alert.items() for alert in prometheus.firing())

    eventually(found, f"alert {labels}", FIRES_S)


def test_the_rules_as_shipped_are_valid() -> None:
    command = [str(prometheus_tool("promtool")), "check", "rules", str(RULES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_scraped_is_what_the_page_tells(
    tandem: Tandem, prometheus: PrometheusServer
) -> None:
    tandem.upstream.script({"text": "refund"})
    ask(tandem)
    wanted = {
        "tandem_requests_total",
        "tandem_fallbacks_total",
        "tandem_edge_entered_total",
        "tandem_session_cloud_calls_total",
        "tandem_edge_queue_depth",
        "tandem_edge_tpot_milliseconds_bucket",
        "tandem_upstream_ttft_milliseconds_bucket",
        "tandem_upstream_breaker_state",
        "rpc_server_duration_milliseconds_bucket",
        "tandem_loop_lag_milliseconds_bucket",
    }

    def scraped() -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for labels, _ in prometheus.query('{__name__=~"tandem_.*|rpc_.*"}'):
            found.setdefault(labels["__name__"], set()).update(labels)
        return found

    eventually(lambda: wanted <= scraped().keys(), f"series {wanted - scraped().keys()}")
    here = {"__name__", "job", "instance", "le"}
    for each in declared().values():
        allowed = {label.replace(".", "_") for label in LABELS[each.name]}
        for name in each.series:
            assert scraped().get(name, here) - here <= allowed, name
    # `_created` tells when a counter began; the client library adds it.
    assert {name for name in scraped() if not name.endswith("_created")} <= series()
    text = repr(prometheus.query('{__name__=~"tandem_.*|rpc_.*"}'))
    assert "zebra" not in text
    assert "tandem-router" in text


def test_every_rule_is_evaluated_without_an_error(prometheus: PrometheusServer) -> None:
    def healthy() -> bool:
        rules = prometheus.rules()
        return bool(rules) and all(rule["health"] == "ok" for rule in rules)

    eventually(healthy, "every rule evaluated")
    assert prometheus.firing() == []


def test_a_provider_that_fails_fires(tandem: Tandem, prometheus: PrometheusServer) -> None:
    # As many as there are, whatever the number of tries.
    tandem.upstream.script(*({"status": 500} for _ in range(40)))
    for _ in range(4):
        ask(tandem)
    fires(prometheus, alertname="TandemProviderDown", tandem_tier="small")
    fires(prometheus, alertname="TandemProviderFails", tandem_tier="small")
    tandem.upstream.reset()


def test_a_worker_that_is_gone_fires(tandem: Tandem, prometheus: PrometheusServer) -> None:
    tandem.edge.process.kill()
    tandem.edge.process.wait()
    fires(prometheus, alertname="TandemDown", job="tandem-edge")
