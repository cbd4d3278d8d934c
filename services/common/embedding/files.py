"""The files of a built embedder, and whether they are whole. Reading needs no `onnx`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from services.common.weights.errors import CorruptModel, ModelNotBuilt
from services.common.weights.source import check_sha256

GRAPH_FILE: Final = "model.onnx"
SPM_FILE: Final = "sp.model"
MANIFEST_FILE: Final = "manifest.json"
DEFAULT_DIR: Final = Path("models/use-multilingual-v3")
# Tokens to either side that a position looks at: the graph's widest window.
LEFT: Final = 2
RIGHT: Final = 2


def read_embedder(folder: Path) -> str:
    """Model id of a built embedder, its files compared with the manifest.

    Raises:
        ModelNotBuilt: No manifest there.
        CorruptModel, ChecksumMismatch: Files contradict it.
    """
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST_FILE).read_text())
        files: dict[str, str] = manifest["files"]
        model_id = str(manifest["model_id"])
    except FileNotFoundError as error:
        raise ModelNotBuilt(
            f"no embedder at {folder}: run `python -m services.common.embedding.kit` first"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptModel(f"{folder / MANIFEST_FILE} cannot be read") from error
    for name, expected in files.items():
        if not (folder / name).is_file():
            raise CorruptModel(f"{folder} lacks {name}")
        check_sha256(folder / name, expected)
    return model_id
