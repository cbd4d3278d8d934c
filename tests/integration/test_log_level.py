"""A running process says more when asked, and less when asked again."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from cli.system import Child, System
from tests.e2e.harness import eventually


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


def lines(child: Child) -> list[dict[str, Any]]:
    text = child.log_file.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_sigusr1_changes_the_level(system: System) -> None:
    environment = {
        "TANDEM_CLOUD__SERVER__LISTEN": "127.0.0.1:0",
        "TANDEM_CLOUD__TELEMETRY__LOG_LEVEL": "error",
    }
    module = ["-m", "services.cloud_proxy.main", "--config", "config/cloud.yaml"]
    child = system.start("cloud", module, environment)
    try:
        system.wait_ready(child, 60)
        assert lines(child) == []
        for number, now in enumerate(("debug", "error", "debug"), start=1):
            os.kill(child.process.pid, signal.SIGUSR1)
            eventually(lambda number=number: len(lines(child)) == number, now)  # type: ignore[misc]
            assert (lines(child)[-1]["event"], lines(child)[-1]["now"]) == ("log_level", now)
    finally:
        system.stop()
    # At debug again: the end is told.
    assert [line["event"] for line in lines(child)[3:]] == ["leaving", "draining", "stopped"]
