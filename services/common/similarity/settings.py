"""Which pairs may share an answer, as settings: the same for the router and for its measuring."""

from __future__ import annotations

from pydantic import Field, field_validator

from services.common.settings import Settings
from services.common.similarity.guards import GUARDS


class Similarity(Settings):
    """When two questions of a task are taken for the same; errs towards a miss."""

    threshold: float = Field(default=0.95, ge=0.5, le=1)
    """Cosine from which a stored question may serve, where no verifier judges."""
    loose_threshold: float = Field(default=0.92, ge=0.5, le=1)
    """The same as a last resort (L4), when no model could answer; the guards stay."""
    guards: tuple[str, ...] = tuple(GUARDS)
    """Which guards may forbid; see services/common/similarity/guards.py."""
    max_chars: int = Field(default=300, ge=1)
    """Longer questions are not compared: a vector cannot hold them."""

    @field_validator("guards")
    @classmethod
    def _known(cls, guards: tuple[str, ...]) -> tuple[str, ...]:
        unknown = sorted(set(guards) - set(GUARDS))
        if unknown:
            raise ValueError(f"unknown guard {unknown[0]}; there are {', '.join(GUARDS)}")
        return guards
