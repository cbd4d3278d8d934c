"""What is known of the call that is being served, wherever in its task we stand."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

from services.common.deadline import Budget


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls, as authentication found it.

    Attributes:
        key: Id of the API key, or subject of the token, for limits per key; may be empty.
    """

    name: str
    tenant: str
    roles: frozenset[str] = frozenset()
    key: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One call on receipt.

    Attributes:
        trailers: Filled while serving; sent with the status, errors included.
    """

    method: str
    request_id: str
    session_id: str
    principal: Principal
    budget: Budget
    metadata: dict[str, str]
    trailers: dict[str, str] = field(default_factory=dict)


_CURRENT: ContextVar[Call] = ContextVar("tandem_call")


def current_call() -> Call:
    """The call that this task serves; LookupError outside of one."""
    return _CURRENT.get()


def enter_call(call: Call) -> None:
    """Makes `call` the current one of this task."""
    _CURRENT.set(call)
