"""One build at a time, all or nothing: a lock, a staging folder, a swap."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.common.weights.errors import BuildLocked, DiskFull, ModelError

_POLL_S = 0.2


@contextmanager
def build_lock(out_dir: Path, timeout_s: float) -> Iterator[None]:
    """Holds `.<name>.lock` beside `out_dir`; the kernel frees it if we die.

    Raises:
        BuildLocked: Another process held it for `timeout_s`.
    """
    until = time.monotonic() + timeout_s
    with (out_dir.parent / f".{out_dir.name}.lock").open("w") as file:
        while not _try_lock(file.fileno()):
            if time.monotonic() >= until:
                raise BuildLocked(f"another process has been building {out_dir} for {timeout_s} s")
            time.sleep(_POLL_S)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def staging(out_dir: Path) -> Iterator[Path]:
    """A fresh folder on the same file system, removed at the end.

    Raises:
        DiskFull: Writing inside the block ran out of room.
        ModelError: Any other file system error inside the block.
    """
    folder = Path(tempfile.mkdtemp(prefix=f".{out_dir.name}.new-", dir=out_dir.parent))
    try:
        yield folder
    except OSError as error:
        raise _storage_error(out_dir, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _storage_error(out_dir: Path, error: OSError) -> ModelError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"no room to build {out_dir}: {error}")
    return ModelError(f"cannot write {out_dir}: {error}")


def publish(built: Path, out_dir: Path) -> None:
    """Makes the files durable and moves the folder to its place.

    A crash between the two renames leaves the old folder aside; `sweep` puts it back.
    """
    for path in built.iterdir():
        _fsync(path)
    _fsync(built)
    old = out_dir.parent / f".{out_dir.name}.old"
    if out_dir.exists():
        out_dir.rename(old)
    built.rename(out_dir)
    _fsync(out_dir.parent)
    shutil.rmtree(old, ignore_errors=True)


def sweep(out_dir: Path) -> None:
    """Clears what an interrupted build left; call it under the lock."""
    old = out_dir.parent / f".{out_dir.name}.old"
    if old.exists() and not out_dir.exists():
        old.rename(out_dir)
    shutil.rmtree(old, ignore_errors=True)
    for leftover in out_dir.parent.glob(f".{out_dir.name}.new-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
