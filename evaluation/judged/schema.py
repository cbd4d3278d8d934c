"""What the table of judged rows holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

SCHEMA: Final[Mapping[str, type[pl.DataType]]] = {
    "task": pl.String,
    "intent": pl.String,
    "score": pl.Float64,
    "right": pl.Boolean,
    "cloud_right": pl.Boolean,
    "session": pl.String,
}


@dataclass(frozen=True, slots=True)
class Ids:
    """What scores are bound to: a map from score to confidence holds for exactly one of these.

    Attributes:
        signals: Names joined by `+`, sorted.
    """

    model_id: str
    prompt_id: str
    signals: str

    def described(self, other: Ids) -> str:
        """That part of the ids which differs from another's."""
        for name in ("model_id", "prompt_id", "signals"):
            if getattr(self, name) != getattr(other, name):
                return f"{name} {getattr(self, name)!r}"
        return "the same ids"
