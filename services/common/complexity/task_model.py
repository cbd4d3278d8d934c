"""Which task a request is: one linear layer on its sentence vector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from services.common.embedding.runner import Vector
from services.common.errors import ConfigInvalid

FILE: Final = "tasks.json"
# Weights are written as whole numbers of this step.
STEP: Final = 0.01


@dataclass(frozen=True, slots=True)
class TaskModel:
    """Probabilities of task types.

    Attributes:
        weights: [tasks, 512]; `bias` [tasks].
    """

    tasks: tuple[str, ...]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def load(cls, folder: Path, embedder: str) -> Self:
        """Opens a file.

        Raises:
            ConfigInvalid: There is none, or it is bound to another embedder.
        """
        path = folder / FILE
        try:
            read: Mapping[str, Any] = json.loads(path.read_text())
            bound, tasks = str(read["embedder"]), tuple(map(str, read["tasks"]))
            weights = np.array(read["weights"], np.float32) * np.float32(STEP)
            bias = np.array(read["bias"], np.float32) * np.float32(STEP)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigInvalid(f"{path}: cannot be read") from error
        if bound != embedder:
            raise ConfigInvalid(f"{path}: trained on vectors of {bound}, not of {embedder}")
        return cls(tasks, weights, bias)

    def recognize(self, vector: Vector) -> tuple[str, float]:
        """The likeliest task and its probability."""
        logits = self.weights @ vector.values + self.bias
        chances = np.exp(logits - logits.max())
        best = int(chances.argmax())
        return self.tasks[best], float(chances[best] / chances.sum())
