"""Judged rows made by chance, for tests of the analysts' side."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def judged(
    count: int,
    accuracy: Callable[[float], float] = lambda score: score,
    cloud: float | None = 0.97,
    seed: int = 0,
    task: str = "order",
) -> list[dict[str, Any]]:
    """Rows whose answers are right with probability `accuracy(score)`; two a session."""
    random = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        score = float(random.random())
        row: dict[str, Any] = {
            "id": f"{task}{i}",
            "task": task,
            "intent": "billing" if i % 5 == 0 else "other",
            "score": score,
            "right": bool(random.random() < accuracy(score)),
            "session": f"{task}-s{i // 2}",
            "model_id": "m1",
            "prompt_id": "p1",
        }
        if cloud is not None:
            row["cloud_right"] = bool(random.random() < cloud)
        rows.append(row)
    return rows


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    """As JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
