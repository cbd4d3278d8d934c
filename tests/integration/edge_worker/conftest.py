"""The real edge model; built into the model root if it is not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.edge_worker.kit.build import build_model, default_root, model_dir
from services.edge_worker.runtime.onnx import OnnxOptions, OnnxRuntime


@pytest.fixture(scope="session")
def real_model() -> Path:
    folder = model_dir(default_root())
    build_model(folder)
    return folder


@pytest.fixture(scope="session")
def real_runtime(real_model: Path) -> Iterator[OnnxRuntime]:
    runtime = OnnxRuntime.load(real_model, OnnxOptions())
    yield runtime
    runtime.close()
