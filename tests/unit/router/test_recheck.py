"""The second look at a running edge attempt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.router.policy.recheck import Recheck

LOOK = Recheck(0.3, 0.9, expected_tokens=100, cloud_eta_ms=1_000.0, reserve_ms=50.0)


def test_it_is_due_from_its_share_on() -> None:
    assert not LOOK.due(299.0, 1_000.0)
    assert LOOK.due(300.0, 1_000.0)


@pytest.mark.parametrize(
    ("tokens", "decoding_ms", "remaining_ms", "leave"),
    [
        (11, 500.0, 5_000.0, False),  # 50 ms a token: 4,450 ms for 89 more fit 4,500
        (11, 510.0, 5_000.0, True),  # 51 ms a token do not
        (11, 510.0, 1_040.0, False),  # the cloud no longer fits
        (1, 5_000.0, 5_000.0, False),  # one token shows no pace
        (100, 9_000.0, 5_000.0, False),  # nothing is left to make
    ],
)
def test_it_leaves_where_the_edge_is_late_and_the_cloud_fits(
    tokens: int, decoding_ms: float, remaining_ms: float, leave: bool
) -> None:
    assert LOOK.leave(tokens, decoding_ms, remaining_ms) is leave


def test_silence_is_borne_until_the_second_look_and_twice_what_was_expected() -> None:
    assert LOOK.silence_ms(100.0, 4_000.0) == 1_100.0
    assert replace(LOOK, ttft_ms=900.0).silence_ms(100.0, 4_000.0) == 1_800.0
    # The cloud, at 1,000 ms, would not fit afterwards.
    assert LOOK.silence_ms(0.0, 1_400.0) is None
