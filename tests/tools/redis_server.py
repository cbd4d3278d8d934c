"""A real redis-server on a free port, for tests; installs the Debian package where it may."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

PACKAGE = "redis-server"
START_S = 20.0


def redis_binary() -> str:
    """Path of redis-server, installed first if need be; RuntimeError says what to do."""
    found = shutil.which(PACKAGE)
    if found:
        return found
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise RuntimeError(f"{PACKAGE} is not on PATH. Install it: apt-get install {PACKAGE}")
    # The package would start a server of its own on the usual port.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    command = ["apt-get", "install", "-y", "--no-install-recommends", PACKAGE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        subprocess.run(["apt-get", "update"], env=environment, capture_output=True, check=False)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = shutil.which(PACKAGE)
    if not found:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr[-500:]}")
    return found


class RedisServer:
    """`with RedisServer() as redis:` keeps nothing on disk; `stop` and `start` keep the port."""

    def __init__(self) -> None:
        self._binary = redis_binary()
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """For `TANDEM_REDIS_URL`."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Starts it, empty, and waits until it listens."""
        log = Path(self._folder.name) / "redis.log"
        options = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "save": "",
            "appendonly": "no",
            "dir": self._folder.name,
            "logfile": str(log),
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        self._process = subprocess.Popen([self._binary, *arguments])
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise RuntimeError(f"redis-server ended at once: {log.read_text()[-500:]}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError("redis-server does not listen")

    def stop(self) -> None:
        """Kills it; what it held is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """It keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """After `pause`."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._process is None:
            raise RuntimeError("redis-server does not run")
        self._process.send_signal(number)

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._folder.cleanup()
