"""What is promised, typed: `config/sla.yaml`. Defaults are the shipped promise."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from evaluation.rows import BadData
from services.common.errors import ConfigInvalid
from services.common.settings import Settings, read_yaml, validate


class SlaClass(Settings):
    """One class of tasks."""

    accuracy_floor: float = Field(gt=0, lt=1)
    """Share of right answers, of those that are served."""
    p95_ms: int = Field(ge=1)
    tasks: tuple[str, ...] = ()


class Sla(Settings):
    """All of it."""

    classes: dict[str, SlaClass] = Field(
        default_factory=lambda: {
            "simple": SlaClass(accuracy_floor=0.95, p95_ms=1_000),
            "complex": SlaClass(accuracy_floor=0.98, p95_ms=5_000),
        }
    )
    default_class: str = "complex"
    """Of tasks that no class names."""
    ttft_ms: int = Field(default=300, ge=1)
    cost_cut: float = Field(default=0.40, ge=0, le=1)
    """Against the cloud alone."""
    cache_hit_rate: float = Field(default=0.30, ge=0, le=1)
    availability: float = Field(default=0.995, ge=0, le=1)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.default_class not in self.classes:
            raise ValueError("default_class: must be one of the classes")
        named = [task for one in self.classes.values() for task in one.tasks]
        twice = sorted({task for task in named if named.count(task) > 1})
        if twice:
            raise ValueError(f"in more than one class: {', '.join(twice)}")
        return self

    def of(self, task: str) -> SlaClass:
        """The class of a task."""
        for one in self.classes.values():
            if task in one.tasks:
                return one
        return self.classes[self.default_class]


def read_sla(path: Path) -> Sla:
    """The promise of a file.

    Raises:
        BadData: It cannot be read, or a value breaks its rule.
    """
    try:
        return validate(Sla, read_yaml(path), str(path))
    except ConfigInvalid as error:
        raise BadData(error.message) from error
