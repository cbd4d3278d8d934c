"""Starts and stops the processes of one system on this machine."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.common.errors import TandemError
from services.common.rpc.process import READY_FILE_ENV

_POLL_S = 0.05


class StartFailed(TandemError):
    """A process ended before it was ready, or took too long."""

    reason = "START_FAILED"


@dataclass(slots=True)
class Child:
    """One process.

    Attributes:
        address: host:port, known once it is ready.
    """

    name: str
    process: subprocess.Popen[bytes]
    ready_file: Path
    log_file: Path
    address: str = ""

    def alive(self) -> bool:
        """True while it runs."""
        return self.process.poll() is None


@dataclass(slots=True)
class System:
    """All processes of one system; `run_dir` holds their logs and ready files."""

    run_dir: Path
    children: dict[str, Child] = field(default_factory=dict)
    secret: str = field(default_factory=lambda: secrets.token_hex(32))
    standin_key: str = field(default_factory=lambda: secrets.token_hex(16))

    def start(self, name: str, arguments: list[str], environment: Mapping[str, str]) -> Child:
        """Starts `python ARGUMENTS` in a session of its own, so that Ctrl-C is ours to pass on."""
        self.run_dir.mkdir(parents=True, exist_ok=True)
        ready_file, log_file = self.run_dir / f"{name}.ready", self.run_dir / f"{name}.log"
        ready_file.unlink(missing_ok=True)
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                env={
                    **os.environ,
                    "TANDEM_SERVICE_SECRET": self.secret,
                    "TANDEM_STANDIN_KEY": self.standin_key,
                    READY_FILE_ENV: str(ready_file),
                    **environment,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        child = Child(name, process, ready_file, log_file)
        self.children[name] = child
        return child

    def wait_ready(
        self, child: Child, timeout_s: float = 120.0, tick: Callable[[], None] = lambda: None
    ) -> str:
        """Waits until the process says ready; returns its address.

        Raises:
            StartFailed: It ended or took too long; the message has the end of its log.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if child.ready_file.exists():
                child.address = str(json.loads(child.ready_file.read_text())["address"])
                return child.address
            if not child.alive():
                break
            tick()
            time.sleep(_POLL_S)
        raise StartFailed(
            f"{child.name} did not start; the end of {child.log_file}:\n{_tail(child)}"
        )

    def stop(self, grace_s: float = 15.0) -> None:
        """Stops the router first, so that it drains while the others still answer."""
        order = sorted(self.children.values(), key=lambda c: c.name != "router")
        for child in order:
            if child.alive():
                child.process.terminate()
            if child.name == "router":
                _wait(child, grace_s)
        for child in order:
            if not _wait(child, grace_s):
                child.process.kill()
                child.process.wait()


def _wait(child: Child, timeout_s: float) -> bool:
    try:
        child.process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _tail(child: Child, lines: int = 15) -> str:
    text = child.log_file.read_text(encoding="utf-8", errors="replace")
    return "\n".join(text.splitlines()[-lines:])
