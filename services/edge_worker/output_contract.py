"""Reads the form that an answer must have, in outline.

What costs more than counting characters is left to the thread that compiles forms.
"""

from __future__ import annotations

from collections.abc import Sequence

from services.common.contract import MAX_PATTERN_CHARS
from services.common.errors import InvalidField
from services.edge_worker.config import LimitSettings
from services.edge_worker.form import Form, LabelForm, RegexForm, SchemaForm
from services.edge_worker.grammar_bounds import MAX_SCHEMA_BYTES
from tandem.common.v1 import chat_pb2


def read_output(output: chat_pb2.OutputContract, limits: LimitSettings) -> Form | None:
    """The form; None for free text.

    Raises:
        InvalidField: Labels that break a rule, or a text that is too long.
    """
    form = output.WhichOneof("form")
    if form == "labels":
        return LabelForm(check_labels(LabelForm.field, output.labels.values, limits))
    if form == "json_schema":
        if len(output.json_schema) > MAX_SCHEMA_BYTES:
            raise InvalidField(SchemaForm.field, f"must be at most {MAX_SCHEMA_BYTES} bytes")
        return SchemaForm(output.json_schema)
    if form == "regex":
        if not 1 <= len(output.regex) <= MAX_PATTERN_CHARS:
            raise InvalidField(RegexForm.field, f"must have 1 to {MAX_PATTERN_CHARS} characters")
        return RegexForm(output.regex)
    return None


def check_labels(field: str, labels: Sequence[str], limits: LimitSettings) -> tuple[str, ...]:
    """At least two different, non-empty labels; InvalidField otherwise."""
    if not 2 <= len(labels) <= limits.max_labels:
        raise InvalidField(field, f"must hold 2 to {limits.max_labels} labels")
    seen: set[str] = set()
    for i, label in enumerate(labels):
        if not 1 <= len(label) <= limits.max_label_chars:
            raise InvalidField(
                f"{field}[{i}]", f"must have 1 to {limits.max_label_chars} characters"
            )
        if label in seen:
            raise InvalidField(f"{field}[{i}]", "must differ from the labels before it")
        seen.add(label)
    return tuple(labels)
