"""Checks of output contracts that callers supply: labels, JSON schemas, patterns.

Everything here is bounded: size, depth, no remote references, and patterns run
on a linear-time engine, so that no schema or pattern can hold a process up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

import jsonschema_rs

from services.common.errors import InvalidField

MAX_SCHEMA_BYTES = 64 * 1024
MAX_SCHEMA_DEPTH = 32
MAX_PATTERN_CHARS = 1_024
MAX_LABELS = 256
MAX_LABEL_CHARS = 128
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1_000_000, dfa_size_limit=1_000_000)


class AnswerCheck(Protocol):
    """Says whether an answer keeps its contract."""

    def __call__(self, text: str) -> bool:
        """True where `text` keeps the contract."""


@dataclass(frozen=True, slots=True)
class AnyText:
    """Free text: anything but nothing."""

    def __call__(self, text: str) -> bool:
        return bool(text.strip())


@dataclass(frozen=True, slots=True)
class OneOf:
    """Exactly one of the labels, surrounding white space aside."""

    labels: frozenset[str]

    def __call__(self, text: str) -> bool:
        return text.strip() in self.labels


@dataclass(frozen=True, slots=True)
class Matches:
    """The whole text matches a pattern."""

    validator: jsonschema_rs.Draft202012Validator

    def __call__(self, text: str) -> bool:
        return self.validator.is_valid(text)


@dataclass(frozen=True, slots=True)
class FitsSchema:
    """JSON text that fits a schema."""

    validator: jsonschema_rs.Draft202012Validator

    def __call__(self, text: str) -> bool:
        try:
            return self.validator.is_valid(json.loads(text))
        except (ValueError, RecursionError):
            return False


def check_labels(field: str, labels: list[str]) -> OneOf:
    """Raises InvalidField unless there are 2 to 256 different, non-empty labels."""
    if not 2 <= len(labels) <= MAX_LABELS:
        raise InvalidField(field, f"must hold from 2 to {MAX_LABELS} labels")
    for index, label in enumerate(labels):
        if not label.strip() or len(label) > MAX_LABEL_CHARS:
            raise InvalidField(f"{field}[{index}]", f"must have 1 to {MAX_LABEL_CHARS} characters")
    if len(set(labels)) != len(labels):
        raise InvalidField(field, "labels must differ from each other")
    return OneOf(frozenset(label.strip() for label in labels))


def check_pattern(field: str, pattern: str) -> Matches:
    """Raises InvalidField unless `pattern` compiles on the linear-time engine."""
    if not 0 < len(pattern) <= MAX_PATTERN_CHARS:
        raise InvalidField(field, f"must have 1 to {MAX_PATTERN_CHARS} characters")
    rule = "must be a regular expression without look-around or back-references"
    # Compiled alone first: `a)|(b` would otherwise escape the anchors put around it.
    _compile(field, {"type": "string", "pattern": pattern}, rule)
    whole = {"type": "string", "pattern": f"^(?:{pattern})$"}
    return Matches(_compile(field, whole, rule))


def check_schema(field: str, text: str) -> FitsSchema:
    """Raises InvalidField unless `text` is a bounded JSON schema without remote references."""
    if len(text.encode()) > MAX_SCHEMA_BYTES:
        raise InvalidField(field, f"must be at most {MAX_SCHEMA_BYTES} bytes")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidField(field, "must be a JSON schema: the text is no JSON") from exc
    if not isinstance(schema, dict):
        raise InvalidField(field, "must be a JSON schema: a JSON object")
    _check_bounds(field, schema)
    return FitsSchema(_compile(field, schema, "must be a valid JSON schema (draft 2020-12)"))


def _check_bounds(field: str, schema: dict[str, Any]) -> None:
    """Walks without recursion, since depth is what is being checked."""
    stack: list[tuple[Any, int]] = [(schema, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_SCHEMA_DEPTH:
            raise InvalidField(field, f"must be nested at most {MAX_SCHEMA_DEPTH} deep")
        if isinstance(node, dict):
            for key in ("$ref", "$dynamicRef"):
                reference = node.get(key)
                if isinstance(reference, str) and not reference.startswith("#"):
                    raise InvalidField(field, "must refer only to itself ($ref starts with #)")
            stack.extend((child, depth + 1) for child in node.values())
        elif isinstance(node, list):
            stack.extend((child, depth + 1) for child in node)


def _compile(field: str, schema: dict[str, Any], rule: str) -> jsonschema_rs.Draft202012Validator:
    try:
        return jsonschema_rs.Draft202012Validator(
            schema, pattern_options=_PATTERNS, retriever=_no_retrieval
        )
    except (ValueError, jsonschema_rs.ReferencingError) as exc:
        raise InvalidField(field, rule) from exc


def _no_retrieval(uri: str) -> Any:
    """jsonschema-rs fetches http and file references on its own unless told otherwise."""
    raise ValueError(f"reference to {uri[:100]} is not permitted")
