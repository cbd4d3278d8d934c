"""What the analysts' commands share: thresholds in force, targets, tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
import yaml
from rich.box import SIMPLE
from rich.table import Table

from evaluation.rows import BadData
from services.common.confidence.signals import Signal
from services.common.confidence.thresholds import Thresholds
from services.common.errors import ConfigInvalid
from services.common.settings import read_yaml, validate

THRESHOLDS = Path("config/thresholds.yaml")


def thresholds_at(path: Path) -> Thresholds:
    """The thresholds of a file; the shipped ones where there is no file at the default place.

    Raises:
        BadData: The file breaks a rule.
    """
    if path == THRESHOLDS and not path.exists():
        return Thresholds()
    try:
        return validate(Thresholds, read_yaml(path), str(path))
    except ConfigInvalid as error:
        raise BadData(error.message) from error


def signal_set(names: str) -> frozenset[Signal]:
    """`agreement+logprob` as a set.

    Raises:
        BadData: A name is not known.
    """
    try:
        return frozenset(Signal(name) for name in names.split("+"))
    except ValueError:
        allowed = ", ".join(Signal)
        raise BadData(f"--signals: names joined by +, out of {allowed}") from None


def pairs(values: Sequence[str], option: str) -> dict[str, float]:
    """`NAME=NUMBER` arguments.

    Raises:
        BadData: One is something else.
    """
    found = {}
    for value in values:
        name, _, number = value.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise BadData(f"{option}: NAME=NUMBER, such as billing=50") from None
        if not name or not found[name] >= 0:
            raise BadData(f"{option}: a name and a number that is not negative")
    return found


def as_yaml(comment: str, data: object) -> str:
    """A file with a comment above; short lists stay on one line."""
    lines = "".join(f"# {line}\n" for line in comment.splitlines())
    return lines + yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=96)


def table(*columns: str) -> Table:
    """A plain one."""
    return Table(*columns, box=SIMPLE)


def share(value: float | None) -> str:
    """As per cent, or a dash."""
    return "-" if value is None else f"{value * 100:.1f}"


def between(interval: tuple[float, float] | None) -> str:
    """An interval in per cent."""
    return "" if interval is None else f" ({interval[0] * 100:.1f}-{interval[1] * 100:.1f})"


def warn(texts: Sequence[str]) -> None:
    """On the error stream, so that --json stays one object."""
    for text in texts:
        typer.secho(f"warning: {text}", fg="yellow", err=True)
