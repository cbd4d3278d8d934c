"""Checks the form that an answer must have."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from services.common.errors import InvalidField, Unimplemented
from services.edge_worker.config import LimitSettings
from tandem.common.v1 import chat_pb2

MAX_SCHEMA_CHARS: Final = 16_384
MAX_REGEX_CHARS: Final = 512


def read_output(output: chat_pb2.OutputContract, limits: LimitSettings) -> tuple[str, ...]:
    """The labels, or nothing for free text.

    Raises:
        InvalidField: A form that breaks its rule.
        Unimplemented: A schema or a regular expression that is sound.
    """
    form = output.WhichOneof("form")
    if form == "labels":
        return check_labels("output.labels.values", output.labels.values, limits)
    if form == "json_schema":
        _check_schema(output.json_schema)
        raise Unimplemented("output.json_schema: this worker does not hold answers to a schema")
    if form == "regex":
        _check_regex(output.regex)
        raise Unimplemented("output.regex: this worker does not hold answers to an expression")
    return ()


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


def _check_schema(text: str) -> None:
    field = "output.json_schema"
    if len(text) > MAX_SCHEMA_CHARS:
        raise InvalidField(field, f"must have at most {MAX_SCHEMA_CHARS} characters")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidField(field, "must be valid JSON") from exc
    if not isinstance(schema, dict):
        raise InvalidField(field, "must be a JSON object")


def _check_regex(text: str) -> None:
    field = "output.regex"
    if not 1 <= len(text) <= MAX_REGEX_CHARS:
        raise InvalidField(field, f"must have 1 to {MAX_REGEX_CHARS} characters")
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as exc:
        raise InvalidField(field, "must be a valid regular expression") from exc
