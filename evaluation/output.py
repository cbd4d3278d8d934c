"""Results on disk: whole, or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from evaluation.rows import BadData


def write_whole(path: Path, text: str) -> None:
    """Writes a file beside its place and renames it, so that no half of it is ever seen.

    Raises:
        BadData: The place cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise BadData(f"{path}: cannot be written: {error.strerror}") from None
    partial = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        partial.chmod(0o644)
        partial.replace(path)
    except OSError as error:
        raise BadData(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
