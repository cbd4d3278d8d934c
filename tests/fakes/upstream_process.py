"""Starts the fake upstream as a process and drives it from a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

START_S = 30.0


class UpstreamProcess:
    """`with UpstreamProcess() as upstream:` — blocks until it listens; synchronous on purpose."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fake-upstream-")
        ready = Path(self._folder.name) / "ready.json"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.upstream"],
            env={**os.environ, "TANDEM_READY_FILE": str(ready)},
        )
        self.address = wait_ready(self._process, ready)
        self._client = httpx.Client(base_url=f"http://{self.address}", trust_env=False, timeout=10)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def base_url(self) -> str:
        """For a tier's `base_url`."""
        return f"http://{self.address}/v1"

    def script(self, *behaviours: dict[str, Any], model: str = "") -> None:
        """Queues behaviours for the next requests, for one model or for any."""
        self._post({"model": model, "behaviours": list(behaviours)})

    def default(self, **options: Any) -> None:
        """How requests are answered when nothing is queued."""
        self._post({"default": options})

    def seen(self) -> list[dict[str, Any]]:
        """Every request since the last `reset`."""
        return list(self._client.get("/seen").json()["requests"])

    def wait_outcome(self, outcome: str, *, within_s: float = 10.0) -> dict[str, Any]:
        """The last request, once it has ended so; AssertionError when it does not."""
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            requests = self.seen()
            if requests and requests[-1]["outcome"] == outcome:
                return requests[-1]
            time.sleep(0.02)
        raise AssertionError(
            f"no request ended as {outcome}: {[r['outcome'] for r in self.seen()]}"
        )

    def reset(self) -> None:
        """Forgets the script and what was seen."""
        self._client.delete("/seen").raise_for_status()

    def close(self) -> None:
        """Ends the process."""
        self._client.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def _post(self, order: dict[str, Any]) -> None:
        self._client.post("/script", json=order).raise_for_status()

    def __enter__(self) -> UpstreamProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def wait_ready(process: subprocess.Popen[Any], ready: Path, *, within_s: float = START_S) -> str:
    """The address in a ready file, once it is there; AssertionError when the process ends first."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if ready.exists():
            return str(json.loads(ready.read_text())["address"])
        if process.poll() is not None:
            raise AssertionError(f"the process ended with {process.returncode} before it was ready")
        time.sleep(0.02)
    process.kill()
    process.wait()
    raise AssertionError("the process was not ready in time")
