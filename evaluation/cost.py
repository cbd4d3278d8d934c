"""What the cascade costs against the cloud alone, by formula and by the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from evaluation.replay.ledger import CLOUDS, scan_ledger
from evaluation.rows import BadData


@dataclass(frozen=True, slots=True)
class Prices:
    """Of the cloud, micro USD a token; a mix of its tiers where they come from the ledger."""

    input_token: float
    output_token: float
    from_ledger: bool


@dataclass(frozen=True, slots=True)
class CostReport:
    """Shares of what the cloud alone would have cost, where nothing else is said.

    Attributes:
        escalation: Share of requests that the cloud was asked.
        trim: Share of an escalated request's input tokens that its payload kept.
        input_share: Share of the cloud's bill that is for input; the rest is for output.
        formula: escalation × (trim × input_share + 1 − input_share): right where escalated
            requests are as long as the others.
        by_tokens: The same with the tokens that the escalated requests really have.
        ledger: Recorded cost over that of the cloud alone.
        cloud_only_usd, recorded_usd: Of all rows.
        saved_usd_a_request: Of the recorded policy against the cloud alone.
    """

    rows: int
    prices: Prices
    escalation: float
    trim: float
    input_share: float
    formula: float
    by_tokens: float
    ledger: float
    cloud_only_usd: float
    recorded_usd: float
    saved_usd_a_request: float


def cost_report(path: Path, prices: Prices | None) -> CostReport:
    """One pass over the ledger.

    Args:
        path: Of `tandem ledger export`.
        prices: None: by least squares from what the cloud attempts cost.

    Raises:
        BadData: Not readable, no rows, or no cloud attempt to take prices from.
    """
    facts = scan_ledger(path, sessions=False).filter(pl.col("target").is_in(["EDGE", *CLOUDS]))
    sums = facts.select(*_sums()).collect(engine="streaming").row(0, named=True)
    if not sums["rows"]:
        raise BadData(f"{path}: no rows that a model answered")
    prices = prices or _fitted(path, sums)
    full_in = sums["edge_in"] + sums["cloud_full"]
    full_out = sums["edge_out"] + sums["cloud_out"]
    bill_in, bill_out = prices.input_token * full_in, prices.output_token * full_out
    whole = bill_in + bill_out
    if whole <= 0:
        raise BadData(f"{path}: the cloud alone would cost nothing; there is nothing to compare")
    escalation = sums["escalated"] / sums["rows"]
    trim = sums["cloud_in"] / sums["cloud_full"] if sums["cloud_full"] else 1.0
    share = bill_in / whole
    tokens = prices.input_token * sums["cloud_in"] + prices.output_token * sums["cloud_out"]
    return CostReport(
        rows=sums["rows"],
        prices=prices,
        escalation=escalation,
        trim=trim,
        input_share=share,
        formula=relative_cost(escalation, trim, share),
        by_tokens=tokens / whole,
        ledger=sums["cost"] / whole,
        cloud_only_usd=whole / 1e6,
        recorded_usd=sums["cost"] / 1e6,
        saved_usd_a_request=(whole - sums["cost"]) / 1e6 / sums["rows"],
    )


def relative_cost(escalation: float, trim: float, input_share: float) -> float:
    """Escalation rate × (trim rate × input share + output share)."""
    return escalation * (trim * input_share + 1.0 - input_share)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Self-hosting the edge against paying the cloud for everything.

    Attributes:
        requests_a_month: From so many on the edge pays; None: never, it saves nothing.
        usd_a_month: What it saves at the volume given, fixed costs paid; negative: it costs.
    """

    requests_a_month: float | None
    usd_a_month: float


def break_even(saved_usd_a_request: float, fixed_usd: float, requests: float) -> BreakEven:
    """Fixed costs and requests are of a month."""
    least = fixed_usd / saved_usd_a_request if saved_usd_a_request > 0 else None
    return BreakEven(least, saved_usd_a_request * requests - fixed_usd)


def _sums() -> list[pl.Expr]:
    """An answer that both gave counts once for the cloud alone: with the cloud's tokens."""
    cloud_in, cloud_out = pl.col("cloud_input_tokens"), pl.col("cloud_output_tokens")
    price = pl.col("cloud_cost_micro_usd")
    asked = (cloud_in + cloud_out) > 0
    edge = ~asked
    return [
        pl.len().alias("rows"),
        asked.sum().alias("escalated"),
        pl.col("cost").sum(),
        cloud_in.sum().alias("cloud_in"),
        (cloud_in / pl.col("cloud_trim")).sum().alias("cloud_full"),
        cloud_out.sum().alias("cloud_out"),
        pl.col("edge_input_tokens").filter(edge).sum().alias("edge_in"),
        pl.col("edge_output_tokens").filter(edge).sum().alias("edge_out"),
        (cloud_in**2).sum().alias("ii"),
        (cloud_in * cloud_out).sum().alias("io"),
        (cloud_out**2).sum().alias("oo"),
        (cloud_in * price).sum().alias("ip"),
        (cloud_out * price).sum().alias("op"),
    ]


def _fitted(path: Path, sums: dict[str, float]) -> Prices:
    """Least squares of cost on input and output tokens; a price is never below 0."""
    whole = sums["ii"] * sums["oo"] - sums["io"] ** 2
    if sums["escalated"] < 2 or whole <= 1e-9 * sums["ii"] * sums["oo"]:
        raise BadData(f"{path}: too few cloud attempts to tell prices from: give both prices")
    first = (sums["oo"] * sums["ip"] - sums["io"] * sums["op"]) / whole
    second = (sums["ii"] * sums["op"] - sums["io"] * sums["ip"]) / whole
    if first < 0:
        first, second = 0.0, sums["op"] / sums["oo"]
    elif second < 0:
        first, second = sums["ip"] / sums["ii"], 0.0
    return Prices(first, second, from_ledger=True)
