"""The breakers at both borders: one for the edge, one for each cloud tier."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import structlog
from opentelemetry import metrics

from services.common.breaker import STATE_CLOSED, STATE_CODES, Breaker, Permit
from services.common.telemetry import names
from services.common.vocabulary import Target
from services.router.config import RouterBreakers

_log = structlog.get_logger()
_meter = metrics.get_meter("tandem.router")
_changes = _meter.create_counter(
    names.BREAKER_CHANGES, description="Changes of a breaker's state, by target and new state"
)
_state = _meter.create_gauge(
    names.BREAKER_IS, description="0 closed, 1 half open, 2 open, by target"
)


class Breakers:
    """Holds the breakers; `now` is monotonic seconds."""

    def __init__(self, settings: RouterBreakers) -> None:
        by_target = {
            Target.EDGE: settings.edge,
            Target.CLOUD_SMALL: settings.cloud,
            Target.CLOUD_LARGE: settings.cloud,
        }
        self._breakers: Mapping[Target, Breaker] = {
            target: Breaker(target, each, partial(_changed, target))
            for target, each in by_target.items()
        }
        for target in self._breakers:
            _state.set(STATE_CODES[STATE_CLOSED], {names.TARGET: target})

    def open(self, target: Target, now: float) -> bool:
        """True where a call would be refused now."""
        return not self._breakers[target].would_admit(now)

    def admit(self, target: Target, now: float) -> Permit | None:
        """A permit for one attempt, or None while open."""
        return self._breakers[target].admit(now)

    def insist(self, target: Target) -> Permit:
        """A permit although open; see `Breaker.insist`."""
        return self._breakers[target].insist()


def _changed(target: Target, old: str, new: str) -> None:
    _log.warning("breaker", target=target, before=old, now=new)
    _changes.add(1, {names.TARGET: target, names.BREAKER_STATE: new})
    _state.set(STATE_CODES[new], {names.TARGET: target})
