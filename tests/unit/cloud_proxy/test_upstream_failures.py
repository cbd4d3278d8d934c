"""Statuses, headers and broken connections as errors of ours."""

from __future__ import annotations

import email.utils
import time
from typing import Any

import httpx
import pytest

from services.cloud_proxy.providers.failures import (
    error_of_status,
    error_of_transport,
    plain_code,
    retry_after_ms,
)
from services.common.errors import (
    DeadlineExceeded,
    TandemError,
    UpstreamCut,
    UpstreamMisconfigured,
    UpstreamOverloaded,
    UpstreamRefused,
    UpstreamUnreachable,
)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, UpstreamMisconfigured),
        (400, UpstreamRefused),
        (401, UpstreamMisconfigured),
        (404, UpstreamMisconfigured),
        (408, UpstreamOverloaded),
        (429, UpstreamOverloaded),
        (500, UpstreamOverloaded),
        (529, UpstreamOverloaded),
    ],
)
def test_statuses(status: int, kind: type[TandemError]) -> None:
    assert type(error_of_status(status, {})) is kind


def test_only_plain_codes_are_repeated() -> None:
    assert plain_code({"error": {"code": "model_not_found"}}) == "model_not_found"
    assert plain_code({"error": {"type": "invalid_request_error"}}) == "invalid_request_error"
    bodies: list[Any] = [None, [], {}, {"error": "x"}, {"error": {"code": "Your key sk-1 is bad"}}]
    for body in bodies:
        assert plain_code(body) == ""


def test_retry_after() -> None:
    assert retry_after_ms({}) is None
    assert retry_after_ms({"retry-after": "2"}) == 2_000
    assert retry_after_ms({"retry-after": "1.5"}) == 1_500
    assert retry_after_ms({"retry-after-ms": "250", "retry-after": "9"}) == 250
    assert retry_after_ms({"retry-after": "soon"}) is None
    assert retry_after_ms({"retry-after": "9" * 400}) is not None
    assert retry_after_ms({"retry-after-ms": "nan"}) is None
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert 25_000 <= (retry_after_ms({"retry-after": date}) or 0) <= 30_000
    past = email.utils.formatdate(time.time() - 30, usegmt=True)
    assert retry_after_ms({"retry-after": past}) == 0


@pytest.mark.parametrize(
    ("exc", "answering", "kind"),
    [
        (httpx.ConnectError("x"), False, UpstreamUnreachable),
        (httpx.ConnectTimeout("x"), False, UpstreamUnreachable),
        (httpx.ReadError("x"), False, UpstreamUnreachable),
        (httpx.ReadError("x"), True, UpstreamCut),
        (httpx.RemoteProtocolError("x"), True, UpstreamCut),
        (httpx.PoolTimeout("x"), False, DeadlineExceeded),
    ],
)
def test_transport(exc: httpx.HTTPError, answering: bool, kind: type[TandemError]) -> None:
    assert type(error_of_transport(exc, answering=answering)) is kind
