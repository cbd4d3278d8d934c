"""Finds the caller of a method by its credential."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from services.common.auth.config import CALLER, Callers
from services.common.auth.keys import KeyRing
from services.common.auth.tokens import TokenVerifier, looks_like_token
from services.common.auth.watch import WatchedFile
from services.common.errors import PermissionDenied, Unauthenticated
from services.common.rpc.call import Principal

C = TypeVar("C", bound=Callers)


class Authenticator(Generic[C]):
    """Keys and roles follow their file while serving; issuers are read at the start.

    A refused caller learns one thing: that its credential is not valid. Why is in no
    status, text or log.

    Args:
        file: The callers, as parsed; a subclass of `Callers` may hold more.
    """

    def __init__(self, file: WatchedFile[C]) -> None:
        self._file = file
        self._callers = file.get()
        self._ring = _ring(self._callers)
        self._tokens = TokenVerifier(self._callers.issuers)

    @property
    def callers(self) -> C:
        """The file in force."""
        return self._callers

    async def start(self) -> None:
        """Fetches the issuers' keys."""
        await self._tokens.start()

    async def stop(self) -> None:
        """Ends what `start` began."""
        await self._tokens.stop()

    def authenticate(
        self, method: str, metadata: Mapping[str, str], anonymous: Callable[[C], str] | None = None
    ) -> Principal:
        """The caller, if it may call `method`.

        Args:
            method: `/package.Service/Method`.
            metadata: Of the call.
            anonymous: Names the tenant of calls without a credential; empty: refused.

        Raises:
            Unauthenticated: No valid credential.
            PermissionDenied: A valid one, and not for this method.
        """
        self._follow()
        principal = self._principal(metadata.get("authorization", ""), anonymous)
        if not self._callers.permits(principal.roles, method):
            raise PermissionDenied("the credential does not permit this method")
        return principal

    def _principal(self, authorization: str, anonymous: Callable[[C], str] | None) -> Principal:
        if not authorization and anonymous is not None:
            tenant = anonymous(self._callers)
            if tenant:
                return Principal(name="anonymous", tenant=tenant, roles=frozenset({CALLER}))
        scheme, _, credential = authorization.partition(" ")
        if scheme.lower() == "bearer" and looks_like_token(credential):
            return self._tokens.verify(credential)
        owner = self._ring.find(credential)
        if owner is None or scheme.lower() != "bearer":
            raise Unauthenticated
        return Principal(name=owner.id, tenant=owner.tenant, roles=owner.roles, key=owner.id)

    def _follow(self) -> None:
        callers = self._file.get()
        if callers is not self._callers:
            self._callers = callers
            self._ring = _ring(callers)


def _ring(callers: Callers) -> KeyRing:
    return KeyRing(key.owner() for key in callers.keys)
