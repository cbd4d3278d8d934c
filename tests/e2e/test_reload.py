"""The policy is reloaded under load: atomically, and never into a bad one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.router.policy_store import load_policy
from tests.e2e.conftest import BURN
from tests.e2e.harness import Result, Tandem, eventually, question

SHIPPED = Path("config/policy.yaml").read_text(encoding="utf-8")
STRICT = SHIPPED.replace("edge_keywords: []", "edge_keywords: [zebra]")
BROKEN = SHIPPED.replace("l0: 0.7", "l0: 7")
THRESHOLDS = Path("config/thresholds.yaml")
# The same answer is enough, or not nearly.
JUDGED = "default: {{low: {low}, high: {high}}}\ntasks: {{open_question: {{judged: true}}}}\n"
RELOADS = 60
# What the kubelet has written is in force after this.
IN_FORCE_S = 10.0


class ConfigMap:
    """A mounted ConfigMap: its files are symlinks into a folder that is itself swapped."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self.file, self.thresholds_file = folder / "policy.yaml", folder / "thresholds.yaml"
        self.put(SHIPPED)
        for file in (self.file, self.thresholds_file):
            file.symlink_to(f"..data/{file.name}")

    def put(self, text: str, thresholds: str = "") -> None:
        """Swaps both files at once; without `thresholds` as shipped."""
        self._count += 1
        version = self._folder / f"..v{self._count}"
        version.mkdir()
        (version / "policy.yaml").write_text(text, encoding="utf-8")
        shipped = THRESHOLDS.read_text(encoding="utf-8")
        (version / "thresholds.yaml").write_text(thresholds or shipped, encoding="utf-8")
        link = self._folder / "..new"
        link.symlink_to(version.name)
        link.replace(self._folder / "..data")


@pytest.fixture(scope="module")
def config_map(tmp_path_factory: pytest.TempPathFactory) -> ConfigMap:
    return ConfigMap(tmp_path_factory.mktemp("config-map"))


@pytest.fixture(scope="module")
def tandem(config_map: ConfigMap, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    system = Tandem(
        Path(tmp_path_factory.mktemp("reload")),
        # Each letter of the fake model has a probability of about 0.72.
        {**BURN, "TANDEM_FAKE_EDGE__PEAK": "6.5"},
        router={
            "TANDEM_ROUTER__POLICY_FILE": str(config_map.file),
            "TANDEM_ROUTER__THRESHOLDS_FILE": str(config_map.thresholds_file),
            "TANDEM_ROUTER__POLICY_POLL_MS": "50",
        },
    )
    yield system
    system.close()


def version_of(tandem: Tandem) -> str:
    outcome = tandem.stream(question("hello [[say:Hi.]]")).outcome
    return outcome.decision.policy_version


def policy_health(tandem: Tandem) -> int:
    with grpc.insecure_channel(tandem.router.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return int(stub.Check(health_pb2.HealthCheckRequest(service="policy"), timeout=10).status)


def test_reloads_under_load_fail_nothing_and_mix_nothing(
    tandem: Tandem, config_map: ConfigMap, tmp_path: Path
) -> None:
    (tmp_path / "strict.yaml").write_text(STRICT, encoding="utf-8")
    versions = {load_policy(Path("config/policy.yaml"), THRESHOLDS).version}
    versions.add(load_policy(tmp_path / "strict.yaml", THRESHOLDS).version)
    stop, results = threading.Event(), list[Result]()

    def ask() -> None:
        while not stop.is_set():
            results.append(tandem.stream(question("hello [[say:Hi.]]")))

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for number in range(RELOADS):
        config_map.put(STRICT if number % 2 else SHIPPED)
        stop.wait(0.08)
    stop.set()
    for asker in askers:
        asker.join()
    assert len(results) > 10
    seen = set()
    for result in results:
        planned = result.events[0].decision.decision.policy_version
        assert planned == result.outcome.decision.policy_version
        seen.add(planned)
    assert seen <= versions
    assert len(seen) == 2


def test_a_broken_file_leaves_the_old_policy_and_shows(
    tandem: Tandem, config_map: ConfigMap
) -> None:
    config_map.put(SHIPPED)
    shipped = load_policy(Path("config/policy.yaml"), THRESHOLDS).version
    eventually(lambda: version_of(tandem) == shipped, "the shipped policy in force")
    config_map.put(BROKEN)
    eventually(lambda: policy_health(tandem) == 2, "health tells of the bad file")
    assert version_of(tandem) == shipped
    assert tandem.healthy(tandem.router)
    assert '"policy_refused"' in tandem.router.log_file.read_text(encoding="utf-8")
    config_map.put(STRICT)
    eventually(lambda: policy_health(tandem) == 1, "health is well again")
    assert version_of(tandem) != shipped


def test_a_threshold_changes_in_a_running_router(tandem: Tandem, config_map: ConfigMap) -> None:
    def level() -> str:
        request = question("sky? [[say:The sky is blue. It is.]]", task_type="open_question")
        return tandem.stream(request).served[0]

    config_map.put(SHIPPED, JUDGED.format(low=0.2, high=0.4))
    eventually(lambda: level() == "L0", "the edge's answer is enough", IN_FORCE_S)
    config_map.put(SHIPPED, JUDGED.format(low=0.9, high=0.95))
    eventually(lambda: level() == "L3", "it is not nearly enough", IN_FORCE_S)
    config_map.put(SHIPPED, "default: {low: 2}")
    eventually(lambda: policy_health(tandem) == 2, "health tells of the bad file", IN_FORCE_S)
    assert level() == "L3"
