"""Writes the Grafana dashboards: `python -m scripts.dashboards`.

A panel is a line here; the JSON that Grafana imports is made from it, and a test holds that
it is fresh and that every metric in it exists.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scripts.manifests import ROOT

FOLDER = ROOT / "deploy" / "grafana"
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_WIDTH, _HEIGHT, _ACROSS = 8, 8, 3


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph: curves are (PromQL, legend)."""

    title: str
    unit: str
    curves: Sequence[tuple[str, str]]
    note: str = ""


def rate(metric: str, by: str = "", where: str = "") -> str:
    """Sum of a counter's rate."""
    labels = f" by ({by})" if by else ""
    return f"sum{labels} (rate({metric}{{{where}}}[$__rate_interval]))"


def quantile(share: float, metric: str, by: str = "") -> str:
    """Of a histogram, over all pods."""
    labels = f"le, {by}" if by else "le"
    inner = f"sum by ({labels}) (rate({metric}_bucket[$__rate_interval]))"
    return f"histogram_quantile({share}, {inner})"


def spread(metric: str, by: str) -> list[tuple[str, str]]:
    """p50, p99 and their distance."""
    low, high = quantile(0.5, metric, by), quantile(0.99, metric, by)
    label = f"{{{{{by}}}}}"
    return [(low, f"p50 {label}"), (high, f"p99 {label}"), (f"{high} - {low}", f"p99−p50 {label}")]


_REQUESTS = "tandem_requests_total"
_ANSWERED = rate(_REQUESTS, where='tandem_outcome="ANSWERED"')
_ENTERED = rate("tandem_edge_entered_total")
_HITS = 'tandem_outcome=~"CACHE_.*|ESCALATION_MEMORY"'
_TRIM = "tandem_payload_tokens_sum"
_BEFORE, _AFTER = 'tandem_stage="before"', 'tandem_stage="after"'
_GOOD = rate("tandem_feedback_verdicts_total", where='tandem_verdict="GOOD"')
_CALLS, _PROVIDER = "tandem_upstream_calls_total", "tandem_tier, gen_ai_provider_name"
_PROVIDER_LEGEND = "{{tandem_tier}} {{gen_ai_provider_name}}"

DASHBOARDS: dict[str, tuple[str, Sequence[Panel]]] = {
    "router": (
        "Tandem: what callers get",
        [
            Panel(
                "Quality, escalation, trim, unit cost",
                "percentunit",
                [
                    (f"{_GOOD} / {rate('tandem_feedback_verdicts_total')}", "good verdicts"),
                    (f"{rate('tandem_fallbacks_total')} / {_ENTERED}", "escalated of edge"),
                    (f"{rate(_TRIM, where=_AFTER)} / {rate(_TRIM, where=_BEFORE)}", "trimmed to"),
                    (f"{rate('tandem_request_cost_total')} / {_ANSWERED} / 1000", "mUSD a request"),
                ],
                "Marks: a policy was taken; an edge worker began, with a model or prompt of its own.",
            ),
            Panel(
                "Requests by level",
                "reqps",
                [(rate(_REQUESTS, "tandem_level"), "{{tandem_level}}")],
            ),
            Panel(
                "Requests by outcome",
                "reqps",
                [(rate(_REQUESTS, "tandem_outcome"), "{{tandem_outcome}}")],
            ),
            Panel(
                "Requests by reason",
                "reqps",
                [(rate(_REQUESTS, "tandem_reason"), "{{tandem_reason}}")],
            ),
            Panel(
                "Fallback rate by type and task",
                "percentunit",
                [
                    (
                        f"{rate('tandem_fallbacks_total', 'tandem_task_type, tandem_fallback_type')}"
                        " / on (tandem_task_type) group_left"
                        f" {rate('tandem_edge_entered_total', 'tandem_task_type')}",
                        "{{tandem_task_type}} {{tandem_fallback_type}}",
                    )
                ],
            ),
            Panel(
                "Attempts that fell short",
                "reqps",
                [
                    (
                        rate(
                            "tandem_attempts_total",
                            "tandem_level, tandem_outcome",
                            'tandem_outcome!="ACCEPTED"',
                        ),
                        "{{tandem_level}} {{tandem_outcome}}",
                    )
                ],
            ),
            Panel(
                "End to end by target",
                "ms",
                spread("tandem_request_duration_milliseconds", "tandem_target")[:2],
            ),
            Panel(
                "Time to first text", "ms", spread("tandem_ttft_milliseconds", "tandem_target")[:2]
            ),
            Panel(
                "Past the deadline",
                "ms",
                [(quantile(0.999, "tandem_deadline_overrun_milliseconds"), "p99.9")],
            ),
            Panel(
                "Cache",
                "percentunit",
                [
                    (
                        f"{rate('tandem_cache_looks_total', where=_HITS)} / {rate('tandem_cache_looks_total')}",
                        "hits",
                    ),
                    (
                        f"{rate('tandem_cache_wrong_hits_total')} / {rate('tandem_cache_looks_total', where=_HITS)}",
                        "wrong of hits",
                    ),
                ],
            ),
            Panel(
                "Cloud calls a session",
                "short",
                [
                    (
                        f"{rate('tandem_session_cloud_calls_total')} / {rate('tandem_sessions_total')}",
                        "calls",
                    )
                ],
            ),
            Panel(
                "Breakers (2: open)",
                "short",
                [("max by (tandem_target) (tandem_breaker_state)", "{{tandem_target}}")],
            ),
            Panel(
                "Tokens",
                "short",
                [
                    (
                        rate("tandem_request_tokens_total", "tandem_target, gen_ai_token_type"),
                        "{{tandem_target}} {{gen_ai_token_type}}",
                    )
                ],
            ),
            Panel(
                "Ledger",
                "short",
                [(rate("tandem_ledger_entries_total", "tandem_outcome"), "{{tandem_outcome}}")],
            ),
            Panel(
                "Loop lag",
                "ms",
                [(quantile(0.99, "tandem_loop_lag_milliseconds", "job"), "p99 {{job}}")],
            ),
        ],
    ),
    "edge": (
        "Tandem: edge workers",
        [
            Panel(
                "Queue",
                "short",
                [
                    (
                        "sum by (instance, tandem_lane) (tandem_edge_queue_depth)",
                        "{{instance}} {{tandem_lane}}",
                    )
                ],
            ),
            Panel(
                "Rows that decode",
                "short",
                [
                    (
                        "sum by (instance, tandem_lane) (tandem_edge_rows_active)",
                        "{{instance}} {{tandem_lane}}",
                    )
                ],
            ),
            Panel(
                "KV cache",
                "percentunit",
                [
                    (
                        "tandem_edge_kv_used_bytes / tandem_edge_kv_size_bytes",
                        "{{instance}} {{tandem_lane}}",
                    )
                ],
            ),
            Panel(
                "Time to first token", "ms", spread("tandem_edge_ttft_milliseconds", "tandem_lane")
            ),
            Panel("Time per token", "ms", spread("tandem_edge_tpot_milliseconds", "tandem_lane")),
            Panel(
                "Batch size",
                "short",
                [
                    (
                        f"{rate('tandem_edge_step_rows_sum', 'tandem_lane')} / {rate('tandem_edge_step_rows_count', 'tandem_lane')}",
                        "{{tandem_lane}}",
                    )
                ],
            ),
            Panel(
                "Requests",
                "reqps",
                [
                    (
                        rate("tandem_edge_requests_total", "tandem_lane, tandem_outcome"),
                        "{{tandem_lane}} {{tandem_outcome}}",
                    )
                ],
            ),
            Panel(
                "Tokens",
                "short",
                [
                    (
                        rate("tandem_edge_tokens_sum", "tandem_lane, gen_ai_token_type"),
                        "{{tandem_lane}} {{gen_ai_token_type}}",
                    )
                ],
            ),
            Panel(
                "Memory",
                "bytes",
                [('process_resident_memory_bytes{job="tandem-edge"}', "{{instance}}")],
            ),
        ],
    ),
    "cloud": (
        "Tandem: cloud proxy",
        [
            Panel(
                "Failures",
                "percentunit",
                [
                    (
                        rate(_CALLS, _PROVIDER, 'tandem_outcome!~"OK|CANCELLED"')
                        + f" / {rate(_CALLS, _PROVIDER)}",
                        _PROVIDER_LEGEND,
                    )
                ],
            ),
            Panel(
                "Calls by outcome",
                "reqps",
                [
                    (
                        rate(_CALLS, "tandem_tier, tandem_outcome"),
                        "{{tandem_tier}} {{tandem_outcome}}",
                    )
                ],
            ),
            Panel(
                "Breakers (2: open)",
                "short",
                [(f"max by ({_PROVIDER}) (tandem_upstream_breaker_state)", _PROVIDER_LEGEND)],
            ),
            Panel(
                "Time to first token",
                "ms",
                spread("tandem_upstream_ttft_milliseconds", "tandem_tier"),
            ),
            Panel(
                "Time per token", "ms", spread("tandem_upstream_tpot_milliseconds", "tandem_tier")
            ),
            Panel(
                "USD an hour",
                "currencyUSD",
                [
                    (
                        f"{rate('tandem_upstream_cost_total', _PROVIDER)} * 3600 / 1e6",
                        _PROVIDER_LEGEND,
                    )
                ],
            ),
            Panel(
                "Refused by a limit",
                "reqps",
                [(rate("tandem_limits_refusals_total", "tandem_limit"), "{{tandem_limit}}")],
            ),
            Panel(
                "Limits without Redis", "reqps", [(rate("tandem_limits_store_down_total"), "calls")]
            ),
        ],
    ),
}

_MARKS = (
    ("policy taken", 'changes(tandem_policy_reloads_total{tandem_outcome="TAKEN"}[1m]) > 0'),
    (
        "edge worker began",
        "changes(tandem_edge_kv_size_bytes[1m]) > 0 or tandem_edge_kv_size_bytes unless tandem_edge_kv_size_bytes offset 1m",
    ),
)


def written(name: str) -> str:
    """A dashboard as Grafana imports it."""
    title, panels = DASHBOARDS[name]
    board = {
        "uid": f"tandem-{name}",
        "title": title,
        "tags": ["tandem"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "annotations": {"list": [_mark(name, expression) for name, expression in _MARKS]},
        "panels": [_panel(number, panel) for number, panel in enumerate(panels)],
    }
    return json.dumps(board, indent=1, ensure_ascii=False) + "\n"


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, _ACROSS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.note,
        "datasource": _SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "expr": expression, "legendFormat": legend}
            for place, (expression, legend) in enumerate(panel.curves)
        ],
    }


def _mark(name: str, expression: str) -> dict[str, Any]:
    return {"name": name, "datasource": _SOURCE, "enable": True, "expr": expression, "step": "60s"}


def main() -> None:
    """Writes every dashboard anew."""
    for name in DASHBOARDS:
        (FOLDER / f"{name}.json").write_text(written(name), encoding="utf-8")


if __name__ == "__main__":
    main()
