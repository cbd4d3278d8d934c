"""The one tree of errors.

Each class carries its gRPC status, an UPPER_SNAKE reason and whether the caller
may try again. Messages are written for callers: they name the field and what is
allowed, and never hold a secret or text of a prompt. Foreign exceptions are
mapped to this tree where they enter, `from exc`.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar


class Code(Enum):
    """gRPC status codes by name, so that pure code need not import grpc."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"


class TandemError(Exception):
    """Base of all errors of ours.

    Args:
        message: One sentence for the caller.
        retry_after_ms: When another try makes sense; sent as `RetryInfo`.
    """

    code: ClassVar[Code] = Code.INTERNAL
    reason: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_ms = retry_after_ms


class InvalidField(TandemError):
    """A field of the request or of its metadata breaks its rule.

    Args:
        field: Path of the field, such as `messages[0].role`.
        rule: What is allowed.
    """

    code = Code.INVALID_ARGUMENT
    reason = "INVALID_FIELD"

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


class ContextTooLong(InvalidField):
    """The prompt does not fit the model's context."""

    reason = "CONTEXT_TOO_LONG"


class ConfigInvalid(TandemError):
    """A setting breaks its rule; found at start or by a policy check."""

    code = Code.FAILED_PRECONDITION
    reason = "CONFIG_INVALID"


class DeadlineExceeded(TandemError):
    """The budget is used up."""

    code = Code.DEADLINE_EXCEEDED
    reason = "DEADLINE_EXCEEDED"


class Unauthenticated(TandemError):
    """No valid credential; the message never says which part was wrong."""

    code = Code.UNAUTHENTICATED
    reason = "UNAUTHENTICATED"

    def __init__(self) -> None:
        super().__init__("a valid credential is required in the authorization metadata")


class NotFound(TandemError):
    """There is no such thing for this caller; another tenant's reads the same."""

    code = Code.NOT_FOUND
    reason = "NOT_FOUND"


class PermissionDenied(TandemError):
    """The credential is valid and does not permit this."""

    code = Code.PERMISSION_DENIED
    reason = "PERMISSION_DENIED"


class QueueFull(TandemError):
    """Admission refused: too many requests wait already."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "QUEUE_FULL"
    retryable = True


class RateLimited(TandemError):
    """A limit of the caller's refused: requests, tokens, or calls at once."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "RATE_LIMITED"
    retryable = True


class BudgetSpent(TandemError):
    """The caller's money of the day would not reach."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "BUDGET_SPENT"


class LimitsUnavailable(TandemError):
    """The store of limits is down, and the rule is to refuse."""

    code = Code.UNAVAILABLE
    reason = "LIMITS_UNAVAILABLE"
    retryable = True


class SlowReader(TandemError):
    """The caller does not read its stream; generation was stopped."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "SLOW_READER"


class Unimplemented(TandemError):
    """The RPC exists and its work comes later."""

    code = Code.UNIMPLEMENTED
    reason = "UNIMPLEMENTED"


class Draining(TandemError):
    """The process is shutting down and takes no new calls."""

    code = Code.UNAVAILABLE
    reason = "DRAINING"
    retryable = True


class EngineFailed(TandemError):
    """The edge engine broke while it worked on this request."""

    code = Code.UNAVAILABLE
    reason = "ENGINE_FAILED"
    retryable = True


class UpstreamError(TandemError):
    """Base of what a cloud provider can do wrong."""

    code = Code.UNAVAILABLE
    reason = "UPSTREAM_FAILED"
    retryable = True


class UpstreamUnreachable(UpstreamError):
    """No connection, or it broke before the answer began."""

    reason = "UPSTREAM_UNREACHABLE"


class UpstreamRefused(UpstreamError):
    """The provider answered with an error status that trying again does not mend."""

    code = Code.FAILED_PRECONDITION
    reason = "UPSTREAM_REFUSED"
    retryable = False


class UpstreamMisconfigured(UpstreamRefused):
    """It refused the proxy and not this request: its credential, its account, its path."""


class UpstreamOverloaded(UpstreamError):
    """The provider answered 429 or 5xx."""

    reason = "UPSTREAM_OVERLOADED"


class UpstreamStalled(UpstreamError):
    """No piece of the answer came for too long."""

    reason = "UPSTREAM_STALLED"


class UpstreamCut(UpstreamError):
    """The stream ended before its end mark."""

    reason = "UPSTREAM_CUT"


class UpstreamMalformed(UpstreamError):
    """The provider sent something that its protocol does not allow."""

    reason = "UPSTREAM_MALFORMED"


class UpstreamBreakerOpen(UpstreamError):
    """The provider failed too often just now: it was not called."""

    reason = "UPSTREAM_BREAKER_OPEN"


class RemoteError(TandemError):
    """Another service of ours answered with an error; keeps its status and reason."""

    def __init__(
        self,
        message: str,
        *,
        code: Code,
        reason: str,
        retryable: bool,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message, retry_after_ms=retry_after_ms)
        self.remote_code = code
        self.remote_reason = reason
        self.remote_retryable = retryable


class Internal(TandemError):
    """Something unexpected: the caller gets a fixed text, the detail goes to the log."""

    def __init__(self) -> None:
        super().__init__("internal error; the log has the detail under this request id")
