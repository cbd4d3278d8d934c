"""`python -m benchmarks.pii --data F`: precision, recall and time of three detectors.

The peers are installed into an environment of their own under build/bench. Where they cannot
be had the table says so.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.pii_cases import generate
from evaluation.pii_data import Case, read_cases
from evaluation.pii_score import Report, evaluate
from services.common.pii.detector import StructuredDetector
from services.common.pii.kinds import PiiKind
from services.common.pii.span import PiiSpan

_PEERS = {"presidio": "presidio-analyzer==2.2.366", "argus": "argus-redact==0.8.22"}
_FOLDER = Path("build/bench/pii-peers")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A detector whose finds were made elsewhere."""

    spans: dict[str, tuple[PiiSpan, ...]]

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        """What the peer found in this text."""
        return self.spans[text]


def environment(name: str) -> Path | None:
    """The peer's interpreter, its packages installed; None where they cannot be had."""
    folder = _FOLDER / name
    python = folder / "bin/python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", _PEERS[name]], check=False)
        if done.returncode != 0:
            return None
        (folder / "ready").touch()
    return python


def run_peer(name: str, cases: Sequence[Case]) -> tuple[Report, float] | None:
    """The peer's report, and its median milliseconds for 200 characters."""
    python = environment(name)
    if python is None:
        return None
    texts = [case.text for case in cases]
    script = Path(__file__).with_name("peer.py")
    done = subprocess.run(
        [python, script, name],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        # Presidio's e-mail recognizer would fetch a list of suffixes.
        env={**os.environ, "TLDEXTRACT_CACHE_TIMEOUT": "0.1"},
    )
    result = json.loads(done.stdout.splitlines()[-1])
    spans = {
        text: tuple(PiiSpan(PiiKind(kind), start, end) for kind, start, end in found)
        for text, found in zip(texts, result["found"], strict=True)
    }
    per_200 = [ms * 200 / max(1, len(t)) for ms, t in zip(result["ms"], texts, strict=True)]
    return evaluate(cases, Recorded(spans)), statistics.median(per_200)


def line(name: str, report: Report, ms: float) -> str:
    """One row of the table."""
    one = report.structured

    def share(value: float | None, interval: tuple[float, float] | None) -> str:
        if value is None or interval is None:
            return "–"
        return f"{value:.1%} ({interval[0]:.1%}–{interval[1]:.1%})"

    alarms = f"{report.clean_texts_with_finds} of {report.clean_texts}"
    return (
        f"| {name} | {share(one.recall, one.recall_interval)} "
        f"| {share(one.precision, one.precision_interval)} "
        f"| {one.hits}/{one.false}/{one.missed} | {alarms} | {ms:.3f} |"
    )


def table(title: str, cases: Sequence[Case]) -> None:
    """Prints all three over some cases."""
    ours = evaluate(cases, StructuredDetector())
    print(f"\n**{title}**, {len(cases)} texts\n")
    print("| detector | recall | precision | found/false/missed | alarms on clean | ms per 200 |")
    print("|---|---|---|---|---|---|")
    print(line("ours", ours, ours.timing.p50))
    for name, package in _PEERS.items():
        found = run_peer(name, cases)
        print(line(package, *found) if found else f"| {package} | cannot be installed here |")
    print("\nrecall of ours by type:", end=" ")
    print(", ".join(f"{k} {s.hits}/{s.hits + s.missed}" for k, s in ours.by_type.items()))


def main() -> int:
    """Both sets, or the generated one alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="labelled JSON lines")
    parser.add_argument("--generate", type=int, default=2_000, help="generated texts")
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}")
    if options.data is not None:
        table(options.data.name, read_cases(options.data))
    table("generated, English and Chinese, with near misses", generate(options.generate, 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
