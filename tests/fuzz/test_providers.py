"""Streams of providers: any bytes give an answer or an error of the upstream, nothing else."""

from __future__ import annotations

import asyncio
import json
import time
from functools import cache

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cloud_proxy.providers.anthropic import anthropic_wire
from services.cloud_proxy.providers.base import Piece
from services.cloud_proxy.providers.body import Dialect
from services.cloud_proxy.providers.http import Endpoint, HttpProvider
from services.cloud_proxy.providers.openai import openai_wire
from services.cloud_proxy.redaction.gate import Gate, Rule
from services.common.errors import DeadlineExceeded, UpstreamError
from services.common.pii.detector import StructuredDetector
from tests.fakes import upstream_messages
from tests.fakes.upstream_script import Behaviour
from tests.fuzz.effort import EFFORT, damaged
from tests.unit.cloud_proxy.requests import request

HOW = Behaviour(text="A few words, 你好.", tool_calls=(("f", '{"a": 1}'),))
BODY = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
ENDPOINT = Endpoint("fuzz", "http://fuzz/v1", 500, 500, 500, 100_000, 4, 5)
DIALECT = Dialect(model="m", max_output_tokens=64)
WIRES = {
    "openai": (openai_wire, b"".join(f"data: {line}\n\n".encode() for line in HOW.lines(BODY))),
    "anthropic": (
        anthropic_wire,
        b"".join(f"data: {line}\n\n".encode() for line in upstream_messages.lines(HOW, BODY)),
    ),
}


@cache
def provider_of(wire: str) -> HttpProvider:
    """One for all examples: certificates are read when it is made."""
    return HttpProvider(ENDPOINT, WIRES[wire][0](DIALECT, "key"))


async def answer(wire: str, body: bytes) -> str:
    """What a provider that sends `body` leads to: the text, or the error's reason."""
    provider = provider_of(wire)
    head = {"content-type": "text/event-stream"}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=head, content=body))
    provider._client = httpx.AsyncClient(transport=transport, base_url="http://fuzz/v1")
    cleared = (await Gate(StructuredDetector(), Rule.REDACT).clear(request("hello"))).request
    said: list[str] = []

    async def sink(piece: Piece) -> None:
        said.append(piece.text)

    try:
        done = await provider.generate(cleared, sink, expires_at=time.monotonic() + 2.0)
    except (UpstreamError, DeadlineExceeded) as error:
        return error.reason
    # What is handed on must fit the wire: proper text, counts that are counts.
    "".join(said).encode()
    for call in done.tool_calls:
        (call.id + call.name + call.arguments).encode()
    done.model_id.encode()
    if done.tokens is not None:
        assert 0 <= done.tokens.input < 2**31
        assert 0 <= done.tokens.output < 2**31
        assert 0 <= done.tokens.cached_input < 2**31
    return "".join(said)


@pytest.mark.parametrize("wire", WIRES)
def test_the_undamaged_stream_is_read(wire: str) -> None:
    assert asyncio.run(answer(wire, WIRES[wire][1])) == HOW.text


@pytest.mark.parametrize("wire", WIRES)
def test_damaged_streams_end_in_order(wire: str) -> None:
    @EFFORT
    @given(seed=st.integers(0, 2**63))
    def look(seed: int) -> None:
        asyncio.run(answer(wire, damaged(WIRES[wire][1], seed)))

    look()


_names = st.sampled_from(
    [
        *("choices", "delta", "content", "usage", "model", "tool_calls", "index", "function", "id"),
        *("name", "arguments", "finish_reason", "logprobs", "logprob", "prompt_tokens", "type"),
        *("completion_tokens", "error", "message", "content_block", "text", "partial_json"),
        *("stop_reason", "input_tokens", "output_tokens", "prompt_tokens_details", "input"),
    ]
)
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "stop", "\ud800", "text", "tool_use", "message_start"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=5),
    max_leaves=12,
)
_kinds = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "error"]
)


@pytest.mark.parametrize("wire", WIRES)
def test_any_json_ends_in_order(wire: str) -> None:
    @EFFORT
    @given(
        chunks=st.lists(st.tuples(_kinds, st.dictionaries(_names, _values, max_size=6)), max_size=4)
    )
    def look(chunks: list[tuple[str, dict[str, object]]]) -> None:
        lines = [json.dumps({"type": kind} | chunk) for kind, chunk in chunks]
        tail = WIRES[wire][1].split(b"\n\n")[-4:]
        body = b"".join(f"data: {line}\n\n".encode() for line in lines) + b"\n\n".join(tail)
        asyncio.run(answer(wire, body))

    look()
