"""Every metric that the services make, read from their source, and its names in Prometheus."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opentelemetry.exporter.prometheus._mapping import map_unit, sanitize_full_name

from services.common.telemetry import names

_KINDS = {
    "create_counter": "counter",
    "create_histogram": "histogram",
    "create_gauge": "gauge",
    "create_observable_gauge": "gauge",
}
_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


@dataclass(frozen=True, slots=True)
class Declared:
    """One metric."""

    name: str
    kind: str
    unit: str
    description: str

    @property
    def family(self) -> str:
        """Its name in Prometheus, less the suffix of its kind."""
        unit = map_unit(self.unit)
        return sanitize_full_name(self.name) + (f"_{unit}" if unit else "")

    @property
    def series(self) -> tuple[str, ...]:
        """What PromQL may name."""
        return tuple(self.family + suffix for suffix in _SUFFIXES[self.kind])


@cache
def declared() -> dict[str, Declared]:
    """By name; AssertionError where two places make the same metric."""
    found: dict[str, Declared] = {}
    for path in sorted(Path("services").rglob("*.py")):
        for each in _in_file(path):
            assert each.name not in found, f"{each.name} is made twice"
            found[each.name] = each
    return found


def series() -> set[str]:
    """All names that PromQL may use of ours."""
    return {name for each in declared().values() for name in each.series}


def _in_file(path: Path) -> Iterator[Declared]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        kind = _KINDS.get(node.func.attr)
        if kind is None:
            continue
        (first, *_), texts = node.args, {key.arg: _text(key.value) for key in node.keywords}
        assert isinstance(first, ast.Attribute), f"{path}: a metric's name is one of names.py"
        name = getattr(names, first.attr)
        yield Declared(name, kind, texts.get("unit", ""), texts.get("description", ""))


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
