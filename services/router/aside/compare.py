"""Whether two answers agree, by the form that was asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass

from services.common.confidence.likeness import likeness
from tandem.router.v1 import router_pb2


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far two answers agree.

    Attributes:
        by: `label`, `schema_field` or `words`.
        agreement: 0 to 1.
    """

    by: str
    agreement: float


def compare(request: router_pb2.RouteRequest, one: str, other: str) -> Comparison:
    """Labels are equal or not, objects agree by field, free text by the words it shares."""
    form = request.output.WhichOneof("form")
    if form in ("labels", "regex"):
        return Comparison("label", float(one.strip().casefold() == other.strip().casefold()))
    if form == "json_schema":
        return Comparison("schema_field", _fields(one, other))
    return Comparison("words", likeness(one, other))


def _fields(one: str, other: str) -> float:
    try:
        left, right = json.loads(one), json.loads(other)
    except (ValueError, RecursionError):
        return 0.0
    if not (isinstance(left, dict) and isinstance(right, dict)):
        return float(left == right)
    names = left.keys() | right.keys()
    same = sum(name in left and name in right and left[name] == right[name] for name in names)
    return same / len(names) if names else 1.0
