"""Pictures as SVG inside the page: no file, no network, no script; ink is the page's own."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.calibration import Bin
from evaluation.report.summary import Line, Summary
from evaluation.sweep.run import TaskSweep

# Stand for the page's own colours, which change with light and dark.
_INK, _LINES = "#010203", "#040506"
# Okabe and Ito's, told apart by colour-blind people, light enough for a dark page.
_COLOURS = {
    "EDGE": "#009E73",
    "CLOUD_SMALL": "#56B4E9",
    "CLOUD_LARGE": "#D55E00",
    "CACHE": "#CC79A7",
}
_OTHER = "#999999"
_MARK, _SECOND = "#0072B2", "#E69F00"
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tandem",
    "font.family": "sans-serif",
    "text.color": _INK,
    "axes.edgecolor": _LINES,
    "axes.labelcolor": _INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _LINES,
    "grid.linewidth": 0.5,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
}


def days(summary: Summary, number: int) -> str:
    """Requests by day and target, stacked, and cost above."""
    with mpl.rc_context(_STYLE):
        figure = Figure((8, 4.2), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
        names = [line.name for line in summary.days]
        above.plot(names, [line.cost_usd for line in summary.days], color=_MARK, marker="o", ms=3)
        above.set_ylabel("USD")
        above.set_ylim(bottom=0)
        _stacked(below, summary, names)
        return _svg(figure, number, "Cost and requests by day")


def _stacked(axes: Axes, summary: Summary, names: Sequence[str]) -> None:
    table = {(day, target): count for day, target, count in summary.targets}
    targets = sorted({target for _, target, _ in summary.targets})
    base = [0] * len(names)
    for target in targets:
        counts = [table.get((day, target), 0) for day in names]
        colour = _COLOURS.get(target, _OTHER)
        axes.bar(names, counts, bottom=base, color=colour, label=target or "not answered")
        base = [low + count for low, count in zip(base, counts, strict=True)]
    axes.set_ylabel("requests")
    if len(names) > 6:
        axes.tick_params(axis="x", rotation=90, labelsize=7)
    axes.legend(ncols=len(targets), loc="upper center", bbox_to_anchor=(0.5, 1.14), fontsize=8)


def tasks(lines: Sequence[Line], number: int) -> str:
    """Cost of each task, dearest above."""
    ordered = sorted(lines, key=lambda line: line.cost_usd)[-20:]
    with mpl.rc_context(_STYLE):
        figure = Figure((8, 0.9 + 0.32 * len(ordered)), layout="constrained")
        axes = figure.subplots()
        axes.barh([line.name for line in ordered], [line.cost_usd for line in ordered], color=_MARK)
        axes.set_xlabel("USD")
        axes.grid(axis="y", visible=False)
        return _svg(figure, number, "Cost by task")


def sweep(found: TaskSweep, target: float, number: int) -> str:
    """Left: right and wrong among kept answers; right: accuracy over escalation."""
    with mpl.rc_context(_STYLE):
        figure = Figure((8, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        kept = [point for point in found.curve if point.accepted]
        share = [1 - point.escalation for point in kept]
        error = [1 - (point.accepted_accuracy or 0.0) for point in kept]
        left.plot(share, error, color=_MARK, marker=".", ms=3)
        left.set(xlabel="kept", ylabel="wrong among kept", xlim=(0, 1), ylim=(0, None))
        _accuracy(right, found, target)
        _mark_chosen(left, right, found)
        return _svg(figure, number, f"Sweep of {found.task}")


def _accuracy(axes: Axes, found: TaskSweep, target: float) -> None:
    for field, colour, name in (
        ("system_accuracy", _MARK, "system"),
        ("accepted_accuracy", _SECOND, "kept answers"),
    ):
        known = [point for point in found.curve if getattr(point, field) is not None]
        values = [getattr(point, field) for point in known]
        if known:
            axes.plot([point.escalation for point in known], values, color=colour, label=name)
    axes.axhline(target, color=_INK, lw=0.8, ls=":", label="target")
    axes.set(xlabel="escalated", ylabel="accuracy", xlim=(0, 1))
    axes.legend(fontsize=8)


def _mark_chosen(left: Axes, right: Axes, found: TaskSweep) -> None:
    for point in found.curve:
        if point.threshold == found.choice.threshold:
            for axes, x in ((left, 1 - point.escalation), (right, point.escalation)):
                axes.axvline(x, color=_INK, lw=0.8)


def reliability(before: Sequence[Bin], after: Sequence[Bin], task: str, number: int) -> str:
    """Share of right answers over the score, as it is and mapped."""
    with mpl.rc_context(_STYLE):
        figure = Figure((4, 3.4), layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=_INK, lw=0.8, ls=":")
        for bins, colour, name in ((before, _SECOND, "score"), (after, _MARK, "mapped")):
            expected, seen = [one.expected for one in bins], [one.observed for one in bins]
            axes.plot(expected, seen, color=colour, marker="o", ms=4, label=name)
        axes.set(xlabel="confidence", ylabel="right", xlim=(0, 1), ylim=(0, 1))
        axes.legend(fontsize=8)
        return _svg(figure, number, f"Reliability of {task}")


def _svg(figure: Figure, number: int, title: str) -> str:
    """The element alone, with ids that no other picture of the page has."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'id="', f'id="p{number}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>p{number}-", text)
    text = text.replace(_INK, "currentColor").replace(_LINES, "var(--line)")
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)
