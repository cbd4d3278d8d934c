"""Maps what a provider or the network does wrong to our errors.

Bodies of error answers may repeat the prompt or the key: no text of theirs is
passed on, only the status and, where it is a plain word, the error code.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from typing import Any

import httpx

from services.common.errors import (
    DeadlineExceeded,
    TandemError,
    UpstreamCut,
    UpstreamError,
    UpstreamMalformed,
    UpstreamMisconfigured,
    UpstreamOverloaded,
    UpstreamRefused,
    UpstreamUnreachable,
)

_PLAIN_CODE = re.compile(r"[a-z][a-z_]{1,47}")
_OVERLOAD_CODES = frozenset(
    (
        "api_error",
        "engine_overloaded",
        "overloaded_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "server_error",
        "timeout_error",
    )
)
_REFUSAL_CODES = frozenset(
    (
        "content_policy_violation",
        "context_length_exceeded",
        "invalid_request_error",
        "request_too_large",
    )
)
# Of the account, the key or the address: every other request would be refused too.
_OUR_FAULT_CODES = frozenset(
    (
        "authentication_error",
        "billing_error",
        "insufficient_quota",
        "model_not_found",
        "not_found_error",
        "permission_error",
    )
)
_NOT_THIS_REQUEST = frozenset((402, 404, 405))
_TRY_AGAIN_STATUSES = frozenset((408, 409, 425, 429))
_MAX_RETRY_AFTER_MS = 24 * 3_600_000


def error_of_status(status: int, headers: Mapping[str, str], code: str = "") -> UpstreamError:
    """The error of an answer with `status`; `code` is the provider's own word, if plain."""
    said = f"the provider answered {status}" + (f" ({code})" if code else "")
    if status >= 500 or status in _TRY_AGAIN_STATUSES:
        return UpstreamOverloaded(said, retry_after_ms=retry_after_ms(headers))
    if status in (401, 403):
        return UpstreamMisconfigured("the provider refused the credential that the proxy holds")
    if 300 <= status < 400:
        redirect = "the provider answered with a redirect, which is never followed"
        return UpstreamMisconfigured(redirect)
    if status in _NOT_THIS_REQUEST or code in _OUR_FAULT_CODES:
        return UpstreamMisconfigured(said)
    return UpstreamRefused(said)


def error_in_body(body: dict[str, Any]) -> UpstreamError:
    """The error of an error object inside an answer that began with 200."""
    code = plain_code(body)
    status = _status_in(body)
    if status is not None:
        return error_of_status(status, {}, code)
    said = "the provider sent an error inside its answer" + (f" ({code})" if code else "")
    if code in _OVERLOAD_CODES:
        return UpstreamOverloaded(said)
    if code in _OUR_FAULT_CODES:
        return UpstreamMisconfigured(said)
    return UpstreamRefused(said) if code in _REFUSAL_CODES else UpstreamError(said)


def plain_code(body: Any) -> str:
    """The provider's error code where it is a plain lower-case word, else empty."""
    error = body.get("error") if isinstance(body, dict) else None
    for key in ("code", "type"):
        value = error.get(key) if isinstance(error, dict) else None
        if isinstance(value, str) and _PLAIN_CODE.fullmatch(value):
            return value
    return ""


def error_of_transport(exc: httpx.HTTPError | httpx.InvalidURL, *, answering: bool) -> TandemError:
    """The error of a broken connection; `answering`: the answer had begun."""
    if isinstance(exc, httpx.PoolTimeout):
        return DeadlineExceeded("every connection to the provider stayed busy until the deadline")
    if answering and isinstance(exc, httpx.TransportError):
        return UpstreamCut("the connection broke in the middle of the answer")
    if isinstance(exc, (httpx.DecodingError, httpx.TooManyRedirects)):
        return UpstreamMalformed("the provider sent something that is no HTTP of ours")
    return UpstreamUnreachable("the provider cannot be reached")


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """`retry-after-ms`, else `Retry-After` (seconds or a date); None if absent or unreadable."""
    try:
        if "retry-after-ms" in headers:
            return _bounded(float(headers["retry-after-ms"]))
        value = headers.get("retry-after", "").strip()
        if not value:
            return None
        if value[0].isdigit():
            return _bounded(float(value) * 1000.0)
        return _bounded(
            (email.utils.parsedate_to_datetime(value).timestamp() - time.time()) * 1000.0
        )
    except (ValueError, OverflowError):
        return None


def _bounded(wait_ms: float) -> int | None:
    return None if wait_ms != wait_ms else int(min(max(wait_ms, 0.0), _MAX_RETRY_AFTER_MS))


def _status_in(body: dict[str, Any]) -> int | None:
    error = body.get("error")
    for key in ("status", "code"):
        value = error.get(key) if isinstance(error, dict) else None
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None
