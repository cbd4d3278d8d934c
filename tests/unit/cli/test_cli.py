"""The command line without a server: help, exit codes, clear sentences."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.ask import follow
from cli.client import build_request
from cli.main import app
from tandem.router.v1 import router_pb2

runner = CliRunner()


@pytest.mark.parametrize("command", ["up", "ask", "decide", "demo"])
def test_help_has_an_example(command: str) -> None:
    shown = runner.invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert f"tandem {command}" in shown.output


def test_nothing_listens_is_said_with_exit_code_three() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "ask", "hi", "--address", "127.0.0.1:1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert "Nothing listens on 127.0.0.1:1" in done.stderr
    assert "tandem up" in done.stderr
    assert "Traceback" not in done.stderr


def test_withdrawn_text_does_not_stand() -> None:
    events = [
        router_pb2.RouteStreamResponse(chunk=router_pb2.Chunk(text="draft")),
        router_pb2.RouteStreamResponse(superseded=router_pb2.Superseded()),
        router_pb2.RouteStreamResponse(chunk=router_pb2.Chunk(text="better")),
        router_pb2.RouteStreamResponse(final=router_pb2.Final()),
    ]
    answer = follow(events, echo=False)
    assert (answer.text, answer.whole) == ("better", True)


def test_labels_are_split() -> None:
    request = build_request("x", labels="a, b")
    assert list(request.output.labels.values) == ["a", "b"]


def test_a_policy_is_checked(tmp_path: Path) -> None:
    good = runner.invoke(app, ["policy", "check"])
    assert good.exit_code == 0
    assert "good, version" in good.output
    (tmp_path / "bad.yaml").write_text("caps: {l0: 7}")
    bad = runner.invoke(app, ["policy", "check", str(tmp_path / "bad.yaml")])
    assert bad.exit_code == 2
    assert "caps.l0" in bad.output
