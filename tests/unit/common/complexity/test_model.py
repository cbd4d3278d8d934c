"""The model's file: what it is bound to, what is refused, and that numpy says what sklearn said."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from evaluation.complexity.fit import SMALL, _members
from evaluation.complexity.prepare import prepare
from evaluation.complexity.train import train
from evaluation.routing_data import Row
from evaluation.rows import BadData
from services.common.complexity.members import Forest, Kernel, Reader, Rows
from services.common.complexity.model import ARRAYS_FILE, HEADER_FILE, ComplexityModel
from services.common.complexity.task_model import TaskModel
from services.common.embedding.runner import Vector
from services.common.errors import ConfigInvalid


class WordEmbedder:
    """Vectors from hashes of words: enough for a model to learn from."""

    model_id = "words-1"

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        found = []
        for text in texts:
            words = [int(hashlib.sha256(w.encode()).hexdigest()[:8], 16) for w in text.split()]
            values = sum(
                (np.random.default_rng(word).normal(size=512) for word in words), np.zeros(512)
            )
            unit = values / max(1e-9, float(np.linalg.norm(values)))
            pieces = tuple(word % 30_000 for word in words)
            found.append(Vector(unit.astype(np.float32), 0.0, pieces))
        return found


EMBEDDER = WordEmbedder()
WORDS = ["river", "stone", "cloud", "paper", "window", "garden", "engine", "silver", "winter"]


def rows(count: int = 120) -> list[Row]:
    """`prove` makes it hard; everything else is noise."""
    rng = np.random.default_rng(0)
    made = []
    for number in range(count):
        text = " ".join(rng.choice(WORDS, 6))
        hard = number % 2 == 0
        made.append(Row(f"prove {text}" if hard else f"name {text}", not hard, True))
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    train(rows(), EMBEDDER, folder, name="test", recipe=SMALL)
    return folder


def ask(model: ComplexityModel, text: str) -> float:
    return model.probability(text, EMBEDDER.embed([text])[0])


def test_it_tells_hard_from_easy_and_is_calibrated(folder: Path) -> None:
    model = ComplexityModel.load(folder, "words-1")
    assert ask(model, "prove river garden stone") > 0.65
    assert ask(model, "name river garden stone") < 0.35
    assert model.header.rows == 120
    assert len(model.header.rows_sha256) == 64


def test_prompt_by_prompt_gives_what_the_learners_gave() -> None:
    """The numpy members against scikit-learn's own forest and the whole kernel matrix."""
    prompts = prepare(rows(), EMBEDDER, SMALL.bits)
    arrays, (kernel, forest) = _members(prompts, SMALL, prompts)
    stored = {
        name: array.astype(np.float32) if array.dtype == np.float16 else array
        for name, array in arrays.items()
    }
    reader, one, other = Reader.of(stored), Kernel.of(stored), Forest.of(stored)
    seen = [reader.read(row.prompt, EMBEDDER.embed([row.prompt])[0]) for row in rows()[:40]]
    np.testing.assert_allclose([one.score(each) for each in seen], kernel[:40], atol=2e-3)
    np.testing.assert_allclose([other.score(each) for each in seen], forest[:40], atol=2e-3)


def test_another_embedder_is_refused_by_name(folder: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"words-1.*words-2.*tandem train complexity"):
        ComplexityModel.load(folder, "words-2")


def test_damage_is_refused(folder: Path, tmp_path: Path) -> None:
    for name in (HEADER_FILE, ARRAYS_FILE):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / ARRAYS_FILE).write_bytes((folder / ARRAYS_FILE).read_bytes()[:-1] + b"x")
    with pytest.raises(ConfigInvalid, match="damaged"):
        ComplexityModel.load(tmp_path, "words-1")
    header = json.loads((folder / HEADER_FILE).read_text())
    (tmp_path / HEADER_FILE).write_text(json.dumps({**header, "format": 9}))
    with pytest.raises(ConfigInvalid, match="format 9"):
        ComplexityModel.load(tmp_path, "words-1")
    (tmp_path / HEADER_FILE).write_text("{}")
    with pytest.raises(ConfigInvalid, match="no header"):
        ComplexityModel.load(tmp_path, "words-1")
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        ComplexityModel.load(tmp_path / "absent", "words-1")


def test_too_little_to_learn_from_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="at least"):
        train(rows(10), EMBEDDER, tmp_path, name="few")
    alike = [Row(f"text {number}", False, True) for number in range(100)]
    with pytest.raises(BadData, match="same gain"):
        train(alike, EMBEDDER, tmp_path, name="alike")


def test_blocks_multiply_as_the_matrix_does() -> None:
    rng = np.random.default_rng(1)
    for count in (1, 15, 16, 17, 300):
        matrix = rng.normal(size=(count, 512)).astype(np.float32)
        vector = rng.normal(size=512).astype(np.float32)
        np.testing.assert_allclose(
            Rows.of(matrix).times(vector), matrix @ vector, rtol=1e-3, atol=1e-3
        )


def test_the_shipped_models_are_bound_to_the_shipped_embedder() -> None:
    shipped = Path("services/router/defaults")
    with pytest.raises(ConfigInvalid, match="another"):
        ComplexityModel.load(shipped, "another")
    with pytest.raises(ConfigInvalid, match="another"):
        TaskModel.load(shipped, "another")
    assert sum(file.stat().st_size for file in shipped.iterdir()) < 1_000_000
