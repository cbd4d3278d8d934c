"""What is kept of each call: counters and one log line; never any text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog
from opentelemetry import metrics

from services.cloud_proxy.policy.cost import Prices, PriceTable, Tokens, cost_micro_usd
from services.cloud_proxy.policy.retry import RetryRule
from services.cloud_proxy.request import Tier
from services.common.errors import TandemError
from services.common.rpc.call import Call
from services.common.telemetry import names

_log = structlog.get_logger()
OK = "OK"
CANCELLED = "CANCELLED"
INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class TierFacts:
    """What the proxy tells of a tier."""

    tier: Tier
    provider: str
    model: str
    standin: bool
    prices: PriceTable
    retry: RetryRule
    max_output_tokens: int = 800


@dataclass(slots=True)
class Progress:
    """How far a call has come; read by the record, whatever ends the call.

    Attributes:
        tries: Calls of the provider so far.
        model_id: As the provider names it.
        output: Pieces of the answer, for our own count of tokens.
        answering: Whether a token has come: then there are no more tries.
        first_token_at: Monotonic seconds; None before.
        tokens: Of the whole call.
        cost_micro_usd: Of the whole call, in millionths of a dollar.
        possibly_billed: Whether a try ended so that the provider may charge for it
            without having said so.
        doubtful_tries: Those of them that are not in `tokens`: no token came.
        doubtful_micro_usd: What those may cost, at the prices of who was tried.
        prompt_tokens: Our own count, taken before the first try.
        facts: Of the provider that is being called, or was last; None before.
    """

    tries: int = 0
    model_id: str = ""
    output: list[str] = field(default_factory=list)
    answering: bool = False
    first_token_at: float | None = None
    tokens: Tokens = field(default_factory=Tokens)
    cost_micro_usd: int = 0
    possibly_billed: bool = False
    doubtful_tries: int = 0
    doubtful_micro_usd: int = 0
    prompt_tokens: int = 0
    facts: TierFacts | None = None

    def doubt(self, prices: Prices) -> None:
        """A try has ended, and the provider may charge for it without having said so."""
        self.possibly_billed = True
        if not self.answering:
            self.doubtful_tries += 1
            prompt = Tokens(self.prompt_tokens, estimated=True)
            self.doubtful_micro_usd += cost_micro_usd(prompt, prices)

    @property
    def doubtful(self) -> Tokens:
        """What those tries may be charged for: their prompts."""
        return Tokens(self.doubtful_tries * self.prompt_tokens, estimated=True)


class Recorder:
    """Counts tries, money and calls."""

    def __init__(self) -> None:
        meter = metrics.get_meter("tandem.cloud")
        self._calls = meter.create_counter(
            names.UPSTREAM_CALLS, description="Calls of providers, each try counted"
        )
        self._cost = meter.create_counter(
            names.UPSTREAM_COST, unit="{micro_usd}", description="Money spent at providers"
        )
        self._ttft = meter.create_histogram(
            names.UPSTREAM_TTFT, unit="ms", description="Receipt by the proxy to the first token"
        )
        self._tpot = meter.create_histogram(
            names.UPSTREAM_TPOT,
            unit="ms",
            description="Time from one token of an answer to the next, its mean",
            explicit_bucket_boundaries_advisory=names.TPOT_BUCKETS_MS,
        )

    def tried(self, facts: TierFacts, outcome: str) -> None:
        """Counts one try; `outcome` is `OK`, `CANCELLED` or an error's reason."""
        self._calls.add(1, {**_labels(facts), names.OUTCOME: outcome})

    @contextmanager
    def call(self, call: Call, facts: TierFacts) -> Iterator[Progress]:
        """Records the call inside, however it ends; `facts` are the tier's first provider's."""
        progress = Progress()
        outcome = OK
        try:
            yield progress
        except TandemError as error:
            outcome = error.reason
            raise
        except asyncio.CancelledError:
            outcome = CANCELLED
            raise
        except Exception:
            outcome = INTERNAL
            raise
        finally:
            self._end(call, progress.facts or facts, progress, outcome)

    def _end(self, call: Call, facts: TierFacts, progress: Progress, outcome: str) -> None:
        self._cost.add(progress.cost_micro_usd, _labels(facts))
        self._pace(call, facts, progress)
        _log.info(
            "upstream_call",
            tenant=call.principal.tenant,
            tier=facts.tier.value,
            provider=facts.provider,
            standin=facts.standin,
            outcome=outcome,
            tries=progress.tries,
            ttft_ms=ttft_ms(call, progress),
            total_ms=round(call.budget.spent_ms(time.monotonic()), 1),
            input_tokens=progress.tokens.input,
            output_tokens=progress.tokens.output,
            estimated=progress.tokens.estimated,
            cost_micro_usd=progress.cost_micro_usd,
            possibly_billed=progress.possibly_billed,
            possibly_micro_usd=progress.doubtful_micro_usd,
        )

    def _pace(self, call: Call, facts: TierFacts, progress: Progress) -> None:
        if progress.first_token_at is None:
            return
        self._ttft.record(call.budget.spent_ms(progress.first_token_at), _labels(facts))
        if progress.tokens.output > 1:
            decode_ms = (time.monotonic() - progress.first_token_at) * 1000.0
            self._tpot.record(decode_ms / (progress.tokens.output - 1), _labels(facts))


def ttft_ms(call: Call, progress: Progress) -> float:
    """Milliseconds from receipt to the first token; 0 where none came."""
    if progress.first_token_at is None:
        return 0.0
    return round(call.budget.spent_ms(progress.first_token_at), 1)


def _labels(facts: TierFacts) -> dict[str, str | bool]:
    return {
        names.TIER: facts.tier.value,
        names.GEN_AI_PROVIDER: facts.provider,
        names.STANDIN: facts.standin,
    }
