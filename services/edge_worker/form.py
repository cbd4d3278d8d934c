"""The form that an answer must have, checked in outline and free of protobuf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class LabelForm:
    """Exactly one of these labels."""

    field: ClassVar[str] = "output.labels.values"
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaForm:
    """JSON text that fits this JSON schema."""

    field: ClassVar[str] = "output.json_schema"
    text: str


@dataclass(frozen=True, slots=True)
class RegexForm:
    """Text that matches this regular expression whole."""

    field: ClassVar[str] = "output.regex"
    text: str


Form = LabelForm | SchemaForm | RegexForm
