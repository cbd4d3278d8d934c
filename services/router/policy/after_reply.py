"""The `shadow` and `late` sections of the policy: what may run after a reply."""

from __future__ import annotations

from pydantic import Field

from services.common.settings import Settings


class Shadow(Settings):
    """Shadow runs: the other side answers too, both are compared, nobody waits."""

    share: float = Field(default=0.0, ge=0, le=1)
    """Of requests, beside those that a grey decision compares anyway."""
    budget_ms: int = Field(default=20_000, ge=100)


class Late(Settings):
    """Better answers that come after a reply of the last resort, read by `GetResult`."""

    enabled: bool = False
    """They cost what the call would have cost, whether or not anybody reads them."""
    budget_ms: int = Field(default=30_000, ge=100)
    ttl_s: float = Field(default=600.0, gt=0)
