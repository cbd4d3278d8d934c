"""When a provider is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cloud_proxy.policy.retry import Failure, RetryMode, RetryRule, next_wait_ms

BACKOFF = RetryRule(RetryMode.BACKOFF)
ONCE = RetryRule(RetryMode.ONCE_ON_TIMEOUT)
NONE = RetryRule(RetryMode.NONE)


def failure(
    number: int = 1, *, retryable: bool = True, timed_out: bool = False,
    answering: bool = False, retry_after_ms: int | None = None,
) -> Failure:  # fmt: skip
    return Failure(number, retryable, timed_out, answering, retry_after_ms)


@pytest.mark.parametrize(
    ("name", "rule", "what", "remaining_ms", "expected"),
    [
        ("first step", BACKOFF, failure(1), 8_000, 100.0),
        ("second step", BACKOFF, failure(2), 8_000, 250.0),
        ("third step", BACKOFF, failure(3), 8_000, 500.0),
        ("no fourth", BACKOFF, failure(4), 8_000, None),
        ("refused for good", BACKOFF, failure(retryable=False), 8_000, None),
        ("text was shown", BACKOFF, failure(answering=True), 8_000, None),
        ("asked to wait", BACKOFF, failure(retry_after_ms=900), 8_000, 900.0),
        ("asked to wait too long", BACKOFF, failure(retry_after_ms=9_000), 8_000, None),
        ("no budget left", BACKOFF, failure(), 120, None),
        ("just enough budget", BACKOFF, failure(), 150, 100.0),
        ("once, silence", ONCE, failure(timed_out=True), 8_000, 0.0),
        ("once, no silence", ONCE, failure(), 8_000, None),
        ("once is once", ONCE, failure(2, timed_out=True), 8_000, None),
        ("once, text shown", ONCE, failure(timed_out=True, answering=True), 8_000, None),
        ("never", NONE, failure(timed_out=True), 8_000, None),
    ],
)
def test_table(
    name: str, rule: RetryRule, what: Failure, remaining_ms: float, expected: float | None
) -> None:
    assert next_wait_ms(rule, what, remaining_ms=remaining_ms, draw=0.5) == expected, name


@given(
    st.sampled_from([BACKOFF, ONCE, NONE]),
    st.builds(
        Failure, st.integers(1, 6), st.booleans(), st.booleans(), st.booleans(),
        st.none() | st.integers(0, 10_000),
    ),
    st.floats(0, 20_000),
    st.floats(0, 1, exclude_max=True),
)  # fmt: skip
def test_never_beyond_the_budget_nor_after_the_first_token(
    rule: RetryRule, what: Failure, remaining_ms: float, draw: float
) -> None:
    wait = next_wait_ms(rule, what, remaining_ms=remaining_ms, draw=draw)
    if wait is not None:
        assert 0 <= wait < remaining_ms
        assert what.retryable
        assert not what.answering
        assert rule.mode is not RetryMode.BACKOFF or wait >= (what.retry_after_ms or 0)
