"""The latency gate at work: a target that becomes slow loses what no longer fits, and regains it.

The edge, with its real model, is slowed to a quarter by stopping its process three quarters of
the time; the cloud by its upstream. Budgets come from the edge's own estimates, so that a slow
machine changes nothing.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tandem.common.v1 import decision_pb2
from tandem.router.v1 import router_pb2
from tests.e2e.harness import Tandem, eventually, question

# Expected lengths under 100, from 100 to 400 and over 400 tokens.
LENGTHS = {"short": 40, "middle": 200, "long": 800}
# Shorter than a decode step, so that each one is slowed.
_PERIOD_S = 0.012


@pytest.fixture(scope="module")
def tandem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    folder = Path(tmp_path_factory.mktemp("latency"))
    policy = yaml.safe_load(Path("config/policy.yaml").read_text(encoding="utf-8"))
    for task, tokens in LENGTHS.items():
        policy["capabilities"][task] = {
            "edge": "yes", "max_output_tokens": tokens, "expected_output_tokens": tokens,
        }  # fmt: skip
    policy["complexity"]["strategy"] = "rules"
    policy["latency"] |= {"probe_every_s": 0.2, "cloud_large_prior_ms": 300}
    policy["shadow"]["share"] = 0
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy), encoding="utf-8")
    system = Tandem(
        folder,
        {},
        edge_module="services.edge_worker.main",
        router={"TANDEM_ROUTER__POLICY_FILE": str(folder / "policy.yaml")},
    )
    yield system
    system.close()


def ask(task: str, text: str = "is it?", **fields: int) -> router_pb2.RouteRequest:
    return question(text, task_type=task, **fields)


def step(tandem: Tandem, request: router_pb2.RouteRequest, deadline_ms: int) -> dict[str, str]:
    """The latency gate's evidence, and the target of the plan's first attempt."""
    plan = tandem.stub.Decide(
        router_pb2.DecideRequest(request=request),
        timeout=60,
        metadata=[("deadline_ms", str(deadline_ms))],
    )
    (found,) = [each for each in plan.steps if each.step == "latency"]
    target = decision_pb2.Target.Name(plan.decision.target).removeprefix("TARGET_")
    return {**found.inputs, "target": target}


def eta_ms(tandem: Tandem, task: str) -> float:
    return float(step(tandem, ask(task), 60_000)["edge_eta_ms"])


def decided(tandem: Tandem, deadline_ms: int) -> dict[str, str]:
    return {task: step(tandem, ask(task), deadline_ms)["target"] for task in LENGTHS}


@contextmanager
def quarter_speed(pid: int) -> Iterator[None]:
    """The process runs a quarter of the time."""
    over = threading.Event()

    def throttle() -> None:
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(_PERIOD_S * 0.75)
            os.kill(pid, signal.SIGCONT)
            time.sleep(_PERIOD_S * 0.25)

    thread = threading.Thread(target=throttle)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def keep_asking(tandem: Tandem, until: float, what: str, *, above: bool) -> None:
    """Sends short requests, which the edge answers, until its estimate has followed."""

    def there() -> bool:
        tandem.stream(ask("short", max_output_tokens=24))
        return (eta_ms(tandem, "long") > until) is above

    eventually(there, what, within_s=60.0)


def test_a_slowed_edge_loses_the_long_answers_and_gets_them_back(tandem: Tandem) -> None:
    for _ in range(4):  # more steps than the estimate looks back
        tandem.stream(ask("short", max_output_tokens=24))
    fast_ms = eta_ms(tandem, "long")
    deadline_ms = int(1.8 * fast_ms)
    assert set(decided(tandem, deadline_ms).values()) == {"EDGE"}
    with quarter_speed(tandem.pid("edge")):
        keep_asking(tandem, 2.5 * fast_ms, "the slow edge in the estimate", above=True)
        assert decided(tandem, deadline_ms) == {
            "short": "EDGE", "middle": "EDGE", "long": "CLOUD_SMALL",
        }  # fmt: skip
        served = tandem.stream(ask("long"), deadline_ms=deadline_ms).served
        assert served[1:] == ("CLOUD_SMALL", "LATENCY_PRESSURE", "TIMEOUT")
    keep_asking(tandem, 1.4 * fast_ms, "the recovered edge", above=False)
    assert set(decided(tandem, deadline_ms).values()) == {"EDGE"}


def test_a_slowed_cloud_loses_its_answers_to_the_edge_and_is_probed_back(tandem: Tandem) -> None:
    hard, deadline_ms = ask("short", "计算三笔分期的实际年化利率", max_output_tokens=8), 1_200
    assert step(tandem, hard, deadline_ms)["target"] == "CLOUD_LARGE"
    tandem.upstream.default(ttft_ms=1_500)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: tandem.stream(hard, deadline_ms=6_000), range(8)))
    slowed = tandem.stream(hard, deadline_ms=deadline_ms)
    assert slowed.served == ("L0", "EDGE", "LATENCY_PRESSURE", "TIMEOUT")
    tandem.upstream.reset()

    def restored() -> bool:
        tandem.stream(hard, deadline_ms=deadline_ms)
        return step(tandem, hard, deadline_ms)["target"] == "CLOUD_LARGE"

    eventually(restored, "the cloud after its probes", within_s=30.0)
    probes = [row["target"] for row in tandem.ledger() if row["arm"] == "probe"]
    assert "CLOUD_LARGE" in probes
