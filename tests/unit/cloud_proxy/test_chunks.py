"""Chunks of a stream, put together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.cloud_proxy.policy.cost import Tokens
from services.cloud_proxy.providers.chunks import ChunkAssembler
from services.common.errors import UpstreamError, UpstreamMalformed, UpstreamOverloaded
from services.common.vocabulary import FinishReason


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return json.dumps({"model": "m-1", "choices": [choice], **more})


def test_text_usage_and_finish() -> None:
    assembler = ChunkAssembler("asked")
    assert assembler.feed(chunk({"role": "assistant", "content": ""})) is None
    piece = assembler.feed(chunk({"content": "hi"}))
    assert piece is not None
    assert (piece.text, piece.model_id) == ("hi", "m-1")
    usage = {
        "prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}
    }  # fmt: skip
    assert not assembler.finished
    assembler.feed(chunk(finish="length", usage=usage))
    assert assembler.finished
    done = assembler.complete()
    assert done.tokens == Tokens(9, 4, 2)
    assert (done.finish, done.model_id, done.mean_logprob) == (FinishReason.LENGTH, "m-1", None)


def test_usage_without_choices() -> None:
    assembler = ChunkAssembler("m")
    assembler.feed(json.dumps({"choices": [], "usage": {"prompt_tokens": 1}}))
    assert assembler.complete().tokens == Tokens(1, 0, 0)


def test_tool_calls_in_pieces() -> None:
    assembler = ChunkAssembler("m")
    first = {"index": 1, "id": "b", "function": {"name": "clock", "arguments": ""}}
    assert assembler.feed(chunk({"tool_calls": [first]})) is not None
    for part in ('{"a"', ": 1}"):
        assembler.feed(chunk({"tool_calls": [{"index": 1, "function": {"arguments": part}}]}))
    assembler.feed(chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "sun"}}]}))
    assembler.feed(chunk(finish="stop"))
    done = assembler.complete()
    assert done.finish is FinishReason.TOOL_CALLS
    assert [(c.id, c.name, c.arguments) for c in done.tool_calls] == [
        ("a", "sun", ""),
        ("b", "clock", '{"a": 1}'),
    ]


def test_mean_logprob() -> None:
    assembler = ChunkAssembler("m")
    choice = {
        "delta": {"content": "x"},
        "logprobs": {"content": [{"logprob": -1}, {"logprob": -3}]},
    }
    assembler.feed(json.dumps({"choices": [choice]}))
    assert assembler.complete().mean_logprob == -2.0


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "[]",
        "null",
        "3",
        '{"choices": 3}',
        '{"choices": ["x"]}',
        '{"choices": [{"delta": {"content": 3}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"index": "x"}]}}]}',
        '{"choices": [{"logprobs": {"content": [{}]}}]}',
        '{"usage": {"prompt_tokens": "many"}}',
        '{"usage": {"prompt_tokens": 1e999}}',
    ],
)
def test_what_cannot_be_read_is_malformed_and_not_quoted(data: str) -> None:
    with pytest.raises(UpstreamMalformed) as caught:
        ChunkAssembler("m").feed(data)
    assert data not in caught.value.message


def test_error_objects() -> None:
    for error, kind in [
        ({"message": "secret", "type": "overloaded_error"}, UpstreamOverloaded),
        ({"message": "secret", "code": 503}, UpstreamOverloaded),
        ({"message": "secret"}, UpstreamError),
        ("secret", UpstreamError),
    ]:
        with pytest.raises(kind) as caught:
            ChunkAssembler("m").feed(json.dumps({"error": error}))
        assert "secret" not in caught.value.message
