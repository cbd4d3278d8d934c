"""The breaker of one provider of one tier."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import structlog
from opentelemetry import metrics

from services.cloud_proxy.policy.select import is_providers_fault
from services.cloud_proxy.record import TierFacts
from services.common.breaker import (
    STATE_CLOSED,
    STATE_CODES,
    Breaker,
    BreakerSettings,
    Permit,
)
from services.common.errors import UpstreamError
from services.common.telemetry import names

_log = structlog.get_logger()
_meter = metrics.get_meter("tandem.cloud")
_changes = _meter.create_counter(
    names.UPSTREAM_BREAKER_CHANGES,
    description="Changes of a breaker's state, by provider and new state",
)
_state = _meter.create_gauge(
    names.UPSTREAM_BREAKER_IS, description="0 closed, 1 half open, 2 open, by provider"
)


def make_breaker(facts: TierFacts, settings: BreakerSettings) -> Breaker:
    """A provider's breaker; its changes are logged and counted."""
    _state.set(STATE_CODES[STATE_CLOSED], _labels(facts))
    return Breaker(f"{facts.tier.value}/{facts.provider}", settings, partial(_changed, facts))


def _changed(facts: TierFacts, old: str, new: str) -> None:
    tier, provider = facts.tier.value, facts.provider
    _log.warning("breaker", tier=tier, provider=provider, before=old, now=new)
    _changes.add(1, {**_labels(facts), names.BREAKER_STATE: new})
    _state.set(STATE_CODES[new], _labels(facts))


def _labels(facts: TierFacts) -> dict[str, str]:
    return {names.TIER: facts.tier.value, names.GEN_AI_PROVIDER: facts.provider}


@contextmanager
def told(permit: Permit) -> Iterator[None]:
    """Tells the breaker how one try ended.

    Callers that left, budgets that ended and requests at fault never count; silence does
    where the budget outlasts it.
    """
    try:
        yield
    except UpstreamError as error:
        if is_providers_fault(error):
            permit.failed(time.monotonic())
        else:
            permit.dropped()
        raise
    except BaseException:
        permit.dropped()
        raise
    permit.succeeded(time.monotonic())
