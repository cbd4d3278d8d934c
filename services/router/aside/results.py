"""Late answers, kept until they are read or too old."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tandem.router.v1 import router_pb2

_MOST: Final = 2_000


@dataclass(frozen=True, slots=True)
class _Kept:
    until: float
    response: router_pb2.RouteResponse | None


class LateResults:
    """In process, bounded. A result belongs to its tenant: another's reads as none."""

    def __init__(self, clock: Callable[[], float], most: int = _MOST) -> None:
        self._clock = clock
        self._most = most
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()

    def expect(self, tenant: str, request_id: str, ttl_s: float) -> None:
        """An answer is being made."""
        self._put(tenant, request_id, ttl_s, None)

    def ready(
        self, tenant: str, request_id: str, ttl_s: float, response: router_pb2.RouteResponse
    ) -> None:
        """It is there."""
        self._put(tenant, request_id, ttl_s, response)

    def none(self, tenant: str, request_id: str) -> None:
        """None will come."""
        self._kept.pop((tenant, request_id), None)

    def get(self, tenant: str, request_id: str) -> router_pb2.GetResultResponse:
        """What there is, with its state."""
        kept = self._kept.get((tenant, request_id))
        if kept is None or kept.until <= self._clock():
            return router_pb2.GetResultResponse(state=router_pb2.RESULT_STATE_NONE)
        if kept.response is None:
            return router_pb2.GetResultResponse(state=router_pb2.RESULT_STATE_PENDING)
        return router_pb2.GetResultResponse(
            state=router_pb2.RESULT_STATE_READY, response=kept.response
        )

    def _put(
        self, tenant: str, request_id: str, ttl_s: float, response: router_pb2.RouteResponse | None
    ) -> None:
        key = (tenant, request_id)
        self._kept.pop(key, None)
        self._kept[key] = _Kept(self._clock() + ttl_s, response)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
