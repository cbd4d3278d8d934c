"""Generates gen/ from protos/; `--check` fails where the files there are not the same."""

from __future__ import annotations

import filecmp
import shutil
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTOS, GEN = ROOT / "protos", ROOT / "gen"


def generate(out: Path) -> None:
    """Runs protoc over every proto into `out`; files without a service get no stubs."""
    files = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    arguments = ["protoc", f"-I{PROTOS}", f"--python_out={out}", f"--grpc_python_out={out}"]
    arguments += [f"--mypy_out=quiet:{out}", f"--mypy_grpc_out=quiet:{out}", *files]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")
    for stub in out.rglob("*_pb2_grpc.py"):
        if "Servicer" not in stub.read_text(encoding="utf-8"):
            stub.unlink()
            stub.with_suffix(".pyi").unlink(missing_ok=True)


def differences(left: Path, right: Path) -> list[str]:
    """Relative paths of files that are not the same on both sides."""
    names = {
        str(path.relative_to(side))
        for side in (left, right)
        for path in side.rglob("*.py*")
        if "__pycache__" not in path.parts
    }
    _, mismatched, missing = filecmp.cmpfiles(left, right, sorted(names), shallow=False)
    return sorted(mismatched + missing)


def main() -> int:
    """Writes gen/, or compares with `--check`."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        generate(fresh)
        if "--check" in sys.argv[1:]:
            stale = differences(fresh, GEN)
            if stale:
                print(f"gen/ is not fresh, run `make gen`: {', '.join(stale)}")
            return 1 if stale else 0
        shutil.rmtree(GEN, ignore_errors=True)
        shutil.copytree(fresh, GEN)
    return 0


if __name__ == "__main__":
    sys.exit(main())
