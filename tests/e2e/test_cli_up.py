"""`tandem up` with the real model and the stand-in; `ask` and `decide` against it; Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.edge_worker.kit.build import build_model, model_dir
from tests.e2e.harness import eventually

ROOT = Path.cwd()


def tandem(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    for recipe in ("q8", "fp32"):
        build_model(model_dir(ROOT / "models", recipe), recipe=recipe)
    folder = tmp_path_factory.mktemp("up")
    options = ["--free-ports", "--config-dir", str(ROOT / "config")]
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "up", *options, "--models-root", str(ROOT / "models")],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        eventually(lambda: (folder / "build/run/up.json").exists(), "tandem up is ready", 110)
        yield process, folder
    finally:
        process.kill()
        process.communicate()


@pytest.mark.timeout(300)
def test_up_ask_decide_and_ctrl_c(running: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = running
    patience = ["--deadline-ms", "60000"]
    asked = tandem(folder, "ask", "--json", *patience, "What is the capital of Japan?")
    assert asked.returncode == 0, asked.stderr
    answer = json.loads(asked.stdout)
    assert answer["outcome"]["decision"]["target"] == "TARGET_EDGE"
    assert "Tokyo" in answer["text"]
    hard = tandem(folder, "ask", *patience, "--max-tokens", "8", "计算三笔分期的实际年化利率")
    assert hard.returncode == 0, hard.stderr
    assert "CLOUD_LARGE" in hard.stderr
    assert "stand-in" in hard.stderr
    decided = tandem(folder, "decide", *patience, "hello")
    assert "TRIVIAL_RULE" in decided.stdout
    pids = [
        json.loads(line)["pid"]
        for name in ("router", "edge", "cloud")
        for line in (folder / f"build/run/{name}.log").read_text(encoding="utf-8").splitlines()
        if '"ready"' in line
    ]
    assert len(pids) == 3
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert "stopped" in output
    assert not any(_alive(pid) for pid in pids)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
