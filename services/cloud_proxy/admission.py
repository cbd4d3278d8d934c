"""Who may call the proxy: the router for a tenant, and callers of its own file."""

from __future__ import annotations

from collections.abc import Mapping

from services.common.auth.callers import Authenticator
from services.common.auth.config import Callers
from services.common.deadline import BudgetLimits
from services.common.errors import Unauthenticated
from services.common.identity import CLAIM_KEY, check_claim, check_service_token
from services.common.rpc.call import Principal

_ROUTER = "router"


class ProxyAdmission:
    """See `Admission`.

    Args:
        secret: Shared with the router.
        limits: Budgets of every caller.
        callers: Who may call without the router; None: nobody.
    """

    def __init__(
        self, secret: str, limits: BudgetLimits, callers: Authenticator[Callers] | None
    ) -> None:
        self._secret = secret
        self._limits = limits
        self._callers = callers

    def authenticate(self, method: str, metadata: Mapping[str, str]) -> Principal:
        """A claim goes with the router's token alone: no key of a caller makes one count."""
        if CLAIM_KEY in metadata:
            check_service_token(self._secret, _ROUTER, metadata.get("authorization", ""))
            claim = check_claim(self._secret, metadata[CLAIM_KEY])
            return Principal(name=_ROUTER, tenant=claim.tenant, key=claim.key)
        if self._callers is None:
            raise Unauthenticated
        return self._callers.authenticate(method, metadata)

    def limits(self, principal: Principal) -> BudgetLimits:
        """See `Admission.limits`."""
        return self._limits

    async def start(self) -> None:
        """Fetches the keys of issuers."""
        if self._callers is not None:
            await self._callers.start()

    async def stop(self) -> None:
        """Ends what `start` began."""
        if self._callers is not None:
            await self._callers.stop()
