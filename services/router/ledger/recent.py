"""Which requests this process recorded lately, so that verdicts need not wait for the store."""

from __future__ import annotations

from collections import OrderedDict

from services.router.ledger.entry import Row

_MAX = 50_000


class Recent:
    """The last ids, bounded."""

    def __init__(self, most: int = _MAX) -> None:
        self._most = most
        self._ids: OrderedDict[tuple[str, str], None] = OrderedDict()

    def add(self, row: Row) -> None:
        """Remembers the row's request."""
        key = (str(row.get("tenant", "")), str(row.get("request_id", "")))
        self._ids[key] = None
        self._ids.move_to_end(key)
        if len(self._ids) > self._most:
            self._ids.popitem(last=False)

    def has(self, tenant: str, request_id: str) -> bool:
        """Whether it is among them."""
        return (tenant, request_id) in self._ids
