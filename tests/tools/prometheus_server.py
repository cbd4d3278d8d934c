"""A real Prometheus on a free port, for tests: the Debian package, unpacked and not installed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

UNPACKED = Path("build/prometheus")
START_S = 20.0
SCRAPE_MS = 500


def prometheus_tool(name: str) -> Path:
    """Path of `prometheus` or `promtool`; RuntimeError says what to do.

    The package would bring a running service and twenty others: it is fetched and unpacked.
    """
    found = shutil.which(name)
    if found:
        return Path(found)
    unpacked = UNPACKED / "usr" / "bin" / name
    if not unpacked.exists():
        _unpack()
    return unpacked.absolute()


def _unpack() -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise RuntimeError("prometheus is not on PATH. Install it")
    UNPACKED.mkdir(parents=True, exist_ok=True)
    fetch = ["apt-get", "download", "prometheus"]
    with tempfile.TemporaryDirectory(prefix="prometheus-") as folder:
        done = _run(fetch, folder)
        if done.returncode and os.geteuid() == 0:
            _run(["apt-get", "update"], folder)
            done = _run(fetch, folder)
        packages = list(Path(folder).glob("prometheus_*.deb"))
        if not packages:
            raise RuntimeError(f"{' '.join(fetch)} failed: {done.stderr[-500:]}")
        subprocess.run(["dpkg", "-x", packages[0], UNPACKED], check=True)


def _run(command: list[str], folder: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


class PrometheusServer:
    """`with PrometheusServer(targets, rules) as prometheus:`.

    Args:
        targets: host:port by job.
        rules: A file of alert rules.
    """

    def __init__(self, targets: Mapping[str, str], rules: Path) -> None:
        self._binary = prometheus_tool("prometheus")
        self._folder = tempfile.TemporaryDirectory(prefix="prometheus-")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        every = f"{SCRAPE_MS}ms"
        config = {
            "global": {"scrape_interval": every, "evaluation_interval": every},
            "rule_files": [str(rules.absolute())],
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": [target]}]}
                for job, target in targets.items()
            ],
        }
        self._config = Path(self._folder.name) / "prometheus.yml"
        self._config.write_text(yaml.safe_dump(config), encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and values of an instant query."""
        query = urllib.parse.urlencode({"query": expression})
        result = self._get(f"/api/v1/query?{query}")["result"]
        return [(each["metric"], float(each["value"][1])) for each in result]

    def firing(self) -> list[dict[str, str]]:
        """Labels of the alerts that fire now."""
        alerts = self._get("/api/v1/alerts")["alerts"]
        return [alert["labels"] for alert in alerts if alert["state"] == "firing"]

    def rules(self) -> list[dict[str, Any]]:
        """Every rule, with its health after the last evaluation."""
        return [rule for group in self._get("/api/v1/rules")["groups"] for rule in group["rules"]]

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as reply:
            return json.load(reply)["data"]

    def __enter__(self) -> PrometheusServer:
        log = Path(self._folder.name) / "log"
        arguments = [
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self._folder.name}/data",
            f"--web.listen-address={self.url.removeprefix('http://')}",
        ]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [self._binary, *arguments], stdout=output, stderr=output
            )
        end = time.monotonic() + START_S
        while time.monotonic() < end and self._process.poll() is None:
            try:
                self._get("/api/v1/status/buildinfo")
            except OSError:
                time.sleep(0.05)
            else:
                return self
        text = log.read_text()[-800:]
        self._stop()
        raise RuntimeError(f"prometheus did not start: {text}")

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        self._folder.cleanup()
