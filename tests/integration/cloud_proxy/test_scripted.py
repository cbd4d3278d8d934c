"""A provider that fails in every way: what the caller gets, how often it is asked, what is charged.

The retries are those that ship (three, before the first token only) with shorter waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from services.common.rpc.status import error_from_rpc
from tests.fakes.upstream_process import UpstreamProcess
from tests.integration.cloud_proxy.conftest import MakeProxy, Proxy

SIXTY = " ".join(f"word{number}" for number in range(60))


@dataclass(frozen=True, slots=True)
class Seen:
    """What one call came to.

    Attributes:
        words: Shown to the caller before the end.
        charged: To the tenant.
        doubt: The provider may charge for more than it told.
    """

    ended: str
    words: int
    charged: bool = False
    doubt: bool = False


async def call(proxy: Proxy, deadline_ms: int) -> Seen:
    text, ended = "", "ANSWERED"
    with capture_logs() as logs:
        try:
            metadata = proxy.metadata(deadline_ms=str(deadline_ms))
            async for event in proxy.open(metadata=metadata, timeout=deadline_ms / 1000 + 5):
                text += event.delta.text
        except grpc.aio.AioRpcError as error:
            ended = error_from_rpc(error).remote_reason
    (end,) = [log for log in logs if "cost_micro_usd" in log]
    return Seen(ended, len(text.split()), end["cost_micro_usd"] > 0, end["possibly_billed"])


@pytest.mark.parametrize(
    ("behaviour", "calls", "seen"),
    [
        # It would have to wait longer than the budget: given up at once.
        ({"status": 429, "retry_after": "47"}, 1, Seen("UPSTREAM_OVERLOADED", 0)),
        ({"status": 500}, 4, Seen("UPSTREAM_OVERLOADED", 0)),
        ({"status": 503}, 4, Seen("UPSTREAM_OVERLOADED", 0)),
        ({"error_after": 0}, 4, Seen("UPSTREAM_OVERLOADED", 0)),
        # Taken and never answered: the provider may charge for the prompt.
        ({"stall_after": 0}, 4, Seen("UPSTREAM_STALLED", 0, doubt=True)),
        ({"content_type": "text/html"}, 4, Seen("UPSTREAM_MALFORMED", 0, doubt=True)),
        ({"bad_json_after": 0}, 4, Seen("UPSTREAM_MALFORMED", 0, doubt=True)),
        # After the first token nothing is tried again, and what came is charged.
        ({"stall_after": 20}, 1, Seen("UPSTREAM_STALLED", 19, charged=True, doubt=True)),
        ({"cut_after": 41}, 1, Seen("UPSTREAM_CUT", 40, charged=True, doubt=True)),
        ({"bad_json_after": 20}, 1, Seen("UPSTREAM_MALFORMED", 19, charged=True, doubt=True)),
        ({"usage": "with_choices"}, 1, Seen("ANSWERED", 60, charged=True)),
        # Each piece comes in time, the whole does not.
        (
            {"chunk_chars": 1, "chunk_ms": 300},
            1,
            Seen("DEADLINE_EXCEEDED", 1, charged=True, doubt=True),
        ),
    ],
)
async def test_what_a_failing_provider_costs(
    make_proxy: MakeProxy,
    upstream: UpstreamProcess,
    behaviour: dict[str, Any],
    calls: int,
    seen: Seen,
) -> None:
    upstream.default(text=SIXTY, **behaviour)
    # A byte each 300 ms is no stall; only the budget ends it.
    deadline_ms = 1_500 if "chunk_ms" in behaviour else 8_000
    assert await call(await make_proxy(), deadline_ms) == seen
    assert len(upstream.seen()) == calls
