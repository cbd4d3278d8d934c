"""Rows to the files of a complexity model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.complexity.fit import Recipe, fit
from evaluation.complexity.prepare import prepare
from evaluation.routing_data import Row, rows_hash
from evaluation.rows import BadData
from services.common.complexity.model import write_model
from services.common.embedding.runner import TextEmbedder

_MIN_ROWS = 60


def train(
    rows: Sequence[Row],
    embedder: TextEmbedder,
    folder: Path,
    *,
    name: str,
    recipe: Recipe | None = None,
    groups: NDArray[np.int64] | None = None,
) -> None:
    """Fits a model and writes it, bound to the embedder and to these rows.

    Args:
        groups: See `fit`.

    Raises:
        BadData: There are too few rows, or all gains are alike.
    """
    if len(rows) < _MIN_ROWS:
        raise BadData(f"{len(rows)} rows to train on; at least {_MIN_ROWS} are needed")
    if len({row.gain for row in rows}) == 1:
        raise BadData("all rows to train on have the same gain: there is nothing to learn")
    recipe = recipe or Recipe()
    fitted = fit(prepare(rows, embedder, recipe.bits), recipe, groups)
    header = {
        "name": name,
        "embedder": embedder.model_id,
        "rows": len(rows),
        "rows_sha256": rows_hash(rows),
        **fitted.parts,
    }
    write_model(folder, header, fitted.arrays)
