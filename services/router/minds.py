"""The small models of the router: opened once, each absent where it cannot be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from services.common.complexity.model import ComplexityModel
from services.common.complexity.task_model import TaskModel
from services.common.embedding.runner import Embedder
from services.common.weights.errors import ModelError

_log = structlog.get_logger()
_SHIPPED: Final = Path(__file__).with_name("defaults")


@dataclass(frozen=True, slots=True)
class Minds:
    """What reads sentences; all None without an embedder."""

    embedder: Embedder | None = None
    complexity: ComplexityModel | None = None
    tasks: TaskModel | None = None


def open_minds(embedder_dir: str, complexity_dir: str) -> Minds:
    """Opens embedder and models. A router without an embedder serves, degraded and marked.

    Raises:
        ConfigInvalid: A model there is damaged or bound to another embedder.
    """
    try:
        embedder = Embedder.load(Path(embedder_dir))
    except ModelError as error:
        _log.warning("no_embedder", folder=embedder_dir, error=type(error).__name__)
        return Minds()
    complexity = Path(complexity_dir) if complexity_dir else _SHIPPED
    return Minds(
        embedder,
        ComplexityModel.load(complexity, embedder.model_id),
        TaskModel.load(_SHIPPED, embedder.model_id),
    )
