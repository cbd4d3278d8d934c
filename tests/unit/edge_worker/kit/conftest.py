"""Tiny models, built once for all tests of the kit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.edge_worker.kit.build import GgufOrigin, convert
from services.edge_worker.kit.weights import Weights, read_weights
from services.edge_worker.runtime.onnx import OnnxOptions, OnnxRuntime
from tests.unit.edge_worker.kit import tiny

ORIGIN = GgufOrigin("tiny", "tiny-model==1.0", "0" * 64, "Apache-2.0")


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="session")
def tiny_weights(tiny_gguf: Path) -> Weights:
    return read_weights(tiny_gguf)


@pytest.fixture(scope="session", params=["fp32", "q8"])
def any_model(
    request: pytest.FixtureRequest, tiny_gguf: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    recipe: str = request.param
    folder = tmp_path_factory.mktemp("models") / recipe
    convert(tiny_gguf, ORIGIN, folder, recipe)
    return folder


@pytest.fixture(scope="session")
def fp32_model(tiny_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "fp32"
    convert(tiny_gguf, ORIGIN, folder, "fp32")
    return folder


@pytest.fixture
def runtime(any_model: Path) -> Iterator[OnnxRuntime]:
    loaded = OnnxRuntime.load(any_model, OnnxOptions(threads=1))
    yield loaded
    loaded.close()


@pytest.fixture
def fp32_runtime(fp32_model: Path) -> Iterator[OnnxRuntime]:
    loaded = OnnxRuntime.load(fp32_model, OnnxOptions(threads=1))
    yield loaded
    loaded.close()
