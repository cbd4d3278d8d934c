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
from services.common.breaker import Breaker, BreakerSettings, Permit
from services.common.errors import UpstreamError
from services.common.telemetry import names

_log = structlog.get_logger()
_changes = metrics.get_meter("tandem.cloud").create_counter(
    names.BREAKER_CHANGES, description="Changes of a breaker's state, by provider and new state"
)


def make_breaker(facts: TierFacts, settings: BreakerSettings) -> Breaker:
    """A provider's breaker; its changes are logged and counted."""
    return Breaker(f"{facts.tier.value}/{facts.provider}", settings, partial(_changed, facts))


def _changed(facts: TierFacts, old: str, new: str) -> None:
    tier, provider = facts.tier.value, facts.provider
    _log.warning("breaker", tier=tier, provider=provider, before=old, now=new)
    labels = {"tier": tier, names.GEN_AI_PROVIDER: provider, names.BREAKER_STATE: new}
    _changes.add(1, labels)


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
