"""Trains the small models that the router ships: `make defaults`.

All examples are written in this folder; no other data enters.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from evaluation.complexity.fit import SMALL
from evaluation.complexity.train import train
from evaluation.examples import complexity, tasks
from evaluation.examples.fill import filled
from evaluation.routing_data import Row
from services.common.complexity.task_model import FILE, STEP, TaskModel
from services.common.embedding.files import DEFAULT_DIR
from services.common.embedding.runner import Embedder

FOLDER: Final = Path("services/router/defaults")
_PER_TEMPLATE = 12
_SEED = 1


def complexity_rows() -> tuple[list[Row], NDArray[np.int64]]:
    """Easy requests are answered by both models, hard ones by the strong one alone.

    Returns:
        Rows, and the number of the template that each was made from.
    """
    rng = random.Random(_SEED)  # noqa: S311  # examples, not secrets
    kinds = [(template, True) for template in complexity.EASY]
    kinds += [(template, False) for template in complexity.HARD]
    made = [
        (Row(text, weak_correct=easy, strong_correct=True), number)
        for number, (template, easy) in enumerate(kinds)
        for text in filled(template, complexity.FILLINGS, _PER_TEMPLATE, rng)
    ]
    return [row for row, _ in made], np.array([number for _, number in made])


def task_examples(
    templates: Mapping[str, Sequence[str]], fillings: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Texts with their task type."""
    rng = random.Random(_SEED)  # noqa: S311
    return [
        (text, task)
        for task, own in templates.items()
        for template in own
        for text in filled(template, fillings, _PER_TEMPLATE, rng)
    ]


def train_tasks(embedder: Embedder, folder: Path) -> None:
    """Writes the task model."""
    examples = task_examples(tasks.LEARN, tasks.FILL_LEARN)
    vectors = np.stack([embedder.embed([text])[0].values for text, _ in examples])
    names = np.array([task for _, task in examples])
    fitted = LogisticRegression(C=20.0, max_iter=2_000, class_weight="balanced")
    fitted.fit(vectors, names)
    written = {
        "embedder": embedder.model_id,
        "tasks": fitted.classes_.tolist(),
        "bias": np.round(fitted.intercept_ / STEP).astype(int).tolist(),
        "weights": np.round(fitted.coef_ / STEP).astype(int).tolist(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(written, separators=(",", ":")) + "\n")


def task_accuracy(embedder: Embedder, folder: Path) -> tuple[int, int]:
    """Right answers and all, on templates and fillings that were not learned from."""
    model = TaskModel.load(folder, embedder.model_id)
    examples = task_examples(tasks.TEST, tasks.FILL_TEST)
    right = sum(model.recognize(embedder.embed([text])[0])[0] == task for text, task in examples)
    return right, len(examples)


def main() -> int:
    """Trains both and tells how many held-out tasks are recognized."""
    embedder = Embedder.load(DEFAULT_DIR)
    rows, groups = complexity_rows()
    train(rows, embedder, FOLDER, name="default", recipe=SMALL, groups=groups)
    train_tasks(embedder, FOLDER)
    right, count = task_accuracy(embedder, FOLDER)
    sys.stdout.write(f"{FOLDER}: {right} of {count} held-out tasks recognized\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
