"""`make follow-docs`: runs what the documentation tells its readers to type, word for word.

Every `sh` and `python` block of the pages, in order, in this checkout, which is best a fresh
clone. `make up` stays up for the blocks after it. What needs something that is not here (a
container engine, a cluster, a key of the reader's) is listed as not run, with the reason; of
`kubectl`, what works without a cluster is run: secrets by a dry run, overlays built and not
applied. Exit code 1 where a command failed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGES = (
    "README.md",
    "README.zh-CN.md",
    "docs/deploy.md",
    "docs/runbook.md",
    "docs/worked-example.md",
)
_BLOCK = re.compile(r"^( *)```(sh|python)\n(.*?)^ *```", re.S | re.M)
_NO_CLUSTER = "no cluster here"
_ASKS_A_CLUSTER = "port-forward|wait|get|logs|exec|rollout|scale|patch|top|describe"
_LEFT_OUT = {
    r"^make (demo|test)\b": "CI runs it",
    r"^docker ": "no container engine here",
    r"…|\$KEY|<[a-z-]+>|(small|large)\.key": "needs something of the reader's own",
    rf"^kubectl .*({_ASKS_A_CLUSTER})": _NO_CLUSTER,
    r"^curl ": _NO_CLUSTER,
    r"kubectl apply -f": _NO_CLUSTER,
}
_UP_LOG = Path("build/run/follow-docs-up.log")
_READY_S = 180.0
_POLL_S = 0.2
_MOST_S = 1_200.0


@dataclass(frozen=True, slots=True)
class Command:
    """What stands in a page at `line`."""

    page: str
    line: int
    kind: str
    text: str


def commands(page: Path) -> Iterator[Command]:
    """A whole Python block is one command; of a shell block, each line with what continues it."""
    content = page.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(content):
        indent, kind, body = block.groups()
        first = content[: block.start()].count("\n") + 2
        lines = [line.removeprefix(indent) for line in body.splitlines()]
        if kind == "python":
            yield Command(str(page), first, kind, "\n".join(lines))
            continue
        text, start = "", first
        for number, line in enumerate(lines, first):
            start = start if text else number
            text += line
            if line.endswith("\\") or text.count('"') % 2:
                text += "\n"
                continue
            if text.strip():
                yield Command(str(page), start, kind, text)
            text = ""


def runnable(text: str) -> str:
    """The command as it can be run here."""
    if text.startswith("kubectl apply -k"):
        return text.replace("kubectl apply -k", "kubectl kustomize")
    if " create secret " in text:
        return f"{text} --dry-run=client -o name"
    return text


class Reader:
    """Types one page's commands into one shell session; variables last to its end."""

    def __init__(self) -> None:
        self._up: subprocess.Popen[bytes] | None = None
        self._assigned = ""

    def run(self, command: Command) -> str:
        """`ok`, `failed: …` or `not run: …`."""
        for pattern, why in _LEFT_OUT.items():
            if re.search(pattern, command.text):
                return f"not run: {why}"
        if command.text.split("#")[0].strip() == "make up":
            return self._start()
        if command.kind == "python":
            return _told([sys.executable, "-c", command.text])
        if re.match(r"[A-Z]+=", command.text):
            self._assigned += f"{command.text}\n"
        script = f"set -euo pipefail\n{self._assigned}{runnable(command.text)}"
        return _told(["bash", "-c", script])

    def close(self) -> None:
        """Ctrl-C for what is still up."""
        if self._up is not None:
            os.killpg(self._up.pid, signal.SIGINT)
            self._up.wait(timeout=60)

    def _start(self) -> str:
        if self._up is not None:
            return "ok (is up)"
        _UP_LOG.parent.mkdir(parents=True, exist_ok=True)
        with _UP_LOG.open("w") as log:
            self._up = subprocess.Popen(
                ["make", "up"],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )
        end = time.monotonic() + _READY_S
        while time.monotonic() < end and self._up.poll() is None:
            if "ready: router at" in _UP_LOG.read_text():
                return "ok"
            time.sleep(_POLL_S)
        return f"failed: not up\n{_UP_LOG.read_text()[-800:]}"


def _told(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_MOST_S, check=False)
    if done.returncode == 0:
        return "ok"
    return f"failed: exit code {done.returncode}\n{(done.stderr or done.stdout)[-800:]}"


def main() -> int:
    """Follows every page and prints what came of each command."""
    failed = 0
    for page in PAGES:
        reader = Reader()
        try:
            for command in commands(Path(page)):
                told = reader.run(command)
                failed += told.startswith("failed")
                shown = command.text.strip().splitlines()[0][:70]
                print(f"{command.page}:{command.line}: {shown}\n    {told}", flush=True)
        finally:
            reader.close()
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
