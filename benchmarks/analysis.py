"""`python -m benchmarks.analysis`: sweep, replay and report over millions of rows.

Each command runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.analysis_rows import write_rows


def main() -> None:
    """Makes the rows, runs the commands, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keep", type=Path, help="Folder for the rows; else a temporary one.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tandem-analysis-") as temporary:
        folder = options.keep or Path(temporary)
        _run(folder, options.rows)


def _run(folder: Path, rows: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ledger, judged = folder / "ledger.parquet", folder / "judged.parquet"
    if not (ledger.exists() and judged.exists()):
        write_rows(ledger, judged, rows)
    sizes = " and ".join(f"{file.stat().st_size / 1e6:.0f} MB" for file in (ledger, judged))
    print(f"{rows:,} rows each of ledger and judged answers, {sizes}\n")
    print("| command | s | CPU s | peak MB |\n|---|---|---|---|")
    new = folder / "new.yaml"
    text = Path("config/policy.yaml").read_text(encoding="utf-8")
    new.write_text(text.replace("  high: 7 ", "  high: 6 ", 1), encoding="utf-8")
    for name, arguments in {
        "sweep": ["--data", judged, "--target", "0.8", "--json"],
        "calibrate": ["--data", judged, "--json"],
        "replay": ["--policy", new, "--data", ledger, "--json"],
        "cost": ["--data", ledger, "--json"],
        "report": ["--data", ledger, "--out", folder / "report.html"],
    }.items():
        print(f"| {name} | {_measured([name, *map(str, arguments)])} |", flush=True)


def _measured(arguments: list[str]) -> str:
    """Seconds, CPU seconds and peak memory of one command."""
    code = (
        "import resource, sys; from cli.main import app; "
        "app(sys.argv[1:], standalone_mode=False); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{took:.1f} | {cpu:.1f} | {int(done.stderr.split()[-1]) / 1024:.0f}"


if __name__ == "__main__":
    main()
