"""Puts the page together from what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from evaluation.calibrate.fit import TaskCalibration
from evaluation.cost import CostReport
from evaluation.replay.run import Estimate, Figures, Replay
from evaluation.report import page as html
from evaluation.report import plots
from evaluation.report.summary import Line, Summary
from evaluation.sweep.run import TaskSweep, Wish


@dataclass(frozen=True, slots=True)
class Findings:
    """What the page is of; parts that were not asked for are None or empty.

    Attributes:
        notes: Shown under the title, such as that the upstream was a stand-in.
    """

    summary: Summary
    cost: CostReport | None = None
    replay: Replay | None = None
    sweeps: tuple[TaskSweep, ...] = ()
    calibrations: tuple[TaskCalibration, ...] = ()
    wish: Wish | None = None
    notes: tuple[str, ...] = ()


_FORMULA = "escalation rate × (trim rate × input share + output share)"
_UNSOUND = "The top scores are not sound: accept_unchecked is lost."


def build(found: Findings, title: str, made: str) -> str:
    """The HTML document.

    Args:
        found: What to show.
        title: Of the page.
        made: When and from what, one line.
    """
    numbers = count(1)
    parts = [
        *(html.text(note) for note in found.notes),
        _overview(found.summary, found.cost),
        html.section(
            "By day",
            html.picture(plots.days(found.summary, next(numbers)), "Cost, and who answered."),
            _lines("day", found.summary.days),
        ),
        html.section(
            "By task",
            html.picture(plots.tasks(found.summary.tasks, next(numbers)), "Cost by task."),
            _lines("task", found.summary.tasks),
        ),
    ]
    if found.cost is not None:
        parts.append(_cost(found.cost))
    if found.replay is not None:
        parts.append(_replay(found.replay))
    for one in found.calibrations:
        parts.append(_calibration(one, next(numbers)))
    for swept in found.sweeps:
        parts.append(_sweep(swept, found.wish or Wish(), next(numbers)))
    return html.page(title, made, parts)


def _overview(summary: Summary, cost: CostReport | None) -> str:
    total = summary.total
    figures = [
        ("requests", f"{total.requests:,}"),
        ("USD", f"{total.cost_usd:,.4f}"),
        ("answered by the cloud", _share(total.escalation)),
        ("good, of those with a verdict", _share(total.good)),
        ("p95", f"{total.p95_ms:,.0f} ms"),
    ]
    if cost is not None:
        figures.append(("of the cloud alone", _share(cost.ledger)))
    return html.tiles(figures)


def _lines(name: str, lines: Sequence[Line]) -> str:
    return html.table(
        (name, "requests", "USD", "cloud", "p50 ms", "p95 ms", "verdicts", "good"),
        [
            (line.name, f"{line.requests:,}", f"{line.cost_usd:,.4f}", _share(line.escalation),
             f"{line.p50_ms:,.0f}", f"{line.p95_ms:,.0f}", f"{line.verdicts:,}", _share(line.good))
            for line in lines
        ],
    )  # fmt: skip


def _cost(cost: CostReport) -> str:
    source = "told from the ledger" if cost.prices.from_ledger else "as given"
    return html.section(
        "Against the cloud alone",
        html.table(
            ("relative cost", "share"),
            [
                (
                    "escalation rate × (trim rate × input share + output share)",
                    _share(cost.formula),
                ),
                ("the same by the tokens of escalated requests", _share(cost.by_tokens)),
                ("as the ledger has it", _share(cost.ledger)),
            ],
        ),
        html.text(
            f"Escalation {_share(cost.escalation)}, trim {_share(cost.trim)}, input share "
            f"{_share(cost.input_share)}; prices {source}."
        ),
    )


def _replay(found: Replay) -> str:
    old, new = found.recorded, found.replayed
    rows = [("cost, micro USD a request", _figure(old.cost, 1), _figure(new.cost, 1))]
    names = {
        "accuracy": "accuracy %",
        "escalation": "answered by the cloud %",
        "wrong_fallback": "wrong fallback %",
        "missed_fallback": "missed fallback %",
    }
    rows += [(label, _of(old, name), _of(new, name)) for name, label in names.items()]
    calls = [f"{each.cloud_calls_per_session:.2f}" for each in (old, new)]
    rows.append(("cloud calls a session", calls[0], calls[1]))
    rows.append(("p95 ms", f"{old.p95_ms:,.0f}", f"{new.p95_ms:,.0f}"))
    moved = [(was, now, f"{number:,}") for was, now, number in found.moved]
    return html.section(
        "Another policy on the same traffic",
        html.table(("", "recorded", "replayed"), rows),
        html.text(
            f"{found.decided_anew:.1%} of the rows are decided anew; {found.imputed:.1%} have no "
            f"judged edge answer, and their task's mean stands in. Intervals are of 95 %."
        ),
        html.table(("from", "to", "rows"), moved) if moved else html.text("No row moves."),
    )


def _calibration(one: TaskCalibration, number: int) -> str:
    parts = [
        html.picture(
            plots.reliability(one.bins_before, one.bins_after, one.task, number),
            f"{one.rows:,} rows of {one.ids.model_id}; mapped out of fold.",
        ),
        html.table(
            ("", "score as it is", "mapped"),
            [
                ("ECE", f"{one.ece_before:.4f}", f"{one.ece_after:.4f}"),
                ("Brier", f"{one.brier_before:.4f}", f"{one.brier_after:.4f}"),
            ],
        ),
        html.table(
            ("bin", "rows", "score", "right"),
            [(str(i), f"{b.rows:,}", _share(b.expected), _share(b.observed))
             for i, b in enumerate(one.bins_before, 1)],
        ),
    ]  # fmt: skip
    if not one.entry.top_is_sound:
        parts.append(html.text(_UNSOUND, warning=True))
    return html.section(f"Calibration: {one.task}", *parts)


def _sweep(swept: TaskSweep, wish: Wish, number: int) -> str:
    rows = [
        (one.name, f"{one.point.threshold:.2f}", _share(one.point.escalation),
         _share(one.accuracy), "held" if one.holds else "missed")
        for one in swept.measured
    ]  # fmt: skip
    if swept.choice.threshold is None:
        said = html.text(f"No threshold: {swept.choice.why}.", warning=True)
    else:
        said = html.text(
            f"Accept from {swept.choice.threshold:.2f}: {wish.objective}, target "
            f"{wish.target:.1%}, {1 - wish.delta:.1%} confidence; {swept.choice.theorem}."
        )
    return html.section(
        f"Thresholds: {swept.task}",
        html.picture(
            plots.sweep(swept, wish.target, number),
            "On the rows that chose; the line is the choice.",
        ),
        said,
        html.table(("on unseen rows", "threshold", "escalated", "accuracy", "target"), rows),
        *(html.text(warning, warning=True) for warning in swept.warnings),
    )


def _of(figures: Figures, name: str) -> str:
    value: Estimate | None = getattr(figures, name)
    return _figure(value, 100)


def _figure(value: Estimate | None, scale: float) -> str:
    if value is None:
        return "–"
    low, high = value.low * scale, value.high * scale
    return f"{value.value * scale:,.2f} ({low:,.2f} to {high:,.2f})"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
