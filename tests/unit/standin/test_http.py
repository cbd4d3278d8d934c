"""The stand-in's HTTP face over a generator without a model; no port is opened."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.standin.bodies import BodyLog
from cli.standin.generator import Begun, Ended, Prompt, Push, Text
from cli.standin.http import Completions, make_app
from services.common.errors import ContextTooLong, EngineFailed, QueueFull, TandemError
from services.common.vocabulary import FinishReason

KEY = "test-key-test-key"
MODEL = "standin/test-fp32"


class FakeGenerator:
    """Says `words`, then fails, hangs or ends."""

    model_id = "test-0123"

    def __init__(
        self, words: tuple[str, ...] = ("Hello", " you"), *, hang: bool = False,
        early: TandemError | None = None, late: TandemError | None = None,
    ) -> None:  # fmt: skip
        self._words = words
        self._hang = hang
        self._early = early
        self._late = late
        self.prompts: list[Prompt] = []
        self.begun = asyncio.Event()
        self.cancelled = False

    async def generate(self, request_id: str, prompt: Prompt, push: Push) -> None:
        self.prompts.append(prompt)
        if self._early:
            raise self._early
        await push(Begun())
        self.begun.set()
        for word in self._words:
            await push(Text(word, (-0.5,) if prompt.logprobs else ()))
        if self._hang:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
        if self._late:
            raise self._late
        await push(Ended(FinishReason.STOP, 7, len(self._words)))


def client(generator: FakeGenerator, log: Path | None = None) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(make_app(generator, MODEL, KEY, BodyLog(log)))
    headers = {"authorization": f"Bearer {KEY}"}
    return httpx.AsyncClient(transport=transport, base_url="http://standin", headers=headers)


async def post(generator: FakeGenerator, **fields: Any) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": "Hi"}], **fields}
    async with client(generator) as http:
        return await http.post("/v1/chat/completions", json=body)


def events(response: httpx.Response) -> list[Any]:
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


async def test_stream_announces_itself_and_ends_with_usage() -> None:
    response = await post(FakeGenerator(), stream=True, stream_options={"include_usage": True})
    assert response.headers["x-tandem-standin"] == "true"
    chunks = events(response)
    assert {c["model"] for c in chunks} == {MODEL}
    assert {c["system_fingerprint"] for c in chunks} == {"standin-test-0123"}
    texts = [c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"]]
    assert "".join(texts) == "Hello you"
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"] == {
        "prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9
    }  # fmt: skip


async def test_usage_only_where_asked_for() -> None:
    assert all("usage" not in c for c in events(await post(FakeGenerator(), stream=True)))


async def test_answer_in_one_piece() -> None:
    body = (await post(FakeGenerator())).json()
    assert body["choices"][0]["message"]["content"] == "Hello you"
    assert body["usage"]["total_tokens"] == 9
    assert body["model"] == MODEL


async def test_logprobs() -> None:
    chunks = events(await post(FakeGenerator(), stream=True, logprobs=True))
    assert chunks[1]["choices"][0]["logprobs"]["content"][0]["logprob"] == -0.5


async def test_bearer_key_is_required() -> None:
    generator = FakeGenerator()
    async with client(generator) as http:
        for value in ("", "Bearer wrong", f"Basic {KEY}", "Bearer caf\u00e9".encode("latin-1")):
            headers: Any = {"authorization": value}
            for reply in (
                await http.post("/v1/chat/completions", json={}, headers=headers),
                await http.get("/v1/models", headers=headers),
            ):
                assert reply.status_code == 401
                assert reply.headers["x-tandem-standin"] == "true"
        assert (await http.get("/healthz")).json()["standin"] is True
        assert (await http.get("/v1/models")).json()["data"][0]["id"] == MODEL
    assert generator.prompts == []


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ContextTooLong("messages", "x"), 400, "context_length_exceeded"),
        (QueueFull("x"), 429, "rate_limit_exceeded"),
        (EngineFailed("x"), 503, "server_error"),
    ],
)
async def test_errors_before_the_first_token(error: TandemError, status: int, code: str) -> None:
    response = await post(FakeGenerator(early=error), stream=True)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert ("retry-after" in response.headers) == (status != 400)


async def test_an_error_in_mid_stream_is_an_error_object() -> None:
    response = await post(FakeGenerator(late=EngineFailed("x")), stream=True)
    assert response.text.rstrip().endswith('"code": "server_error"}}')
    assert "[DONE]" not in response.text


async def test_bodies_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "bodies.jsonl"
    async with client(FakeGenerator(), log) as http:
        for text in ("一", "two"):
            messages = [{"role": "user", "content": text}]
            await http.post("/v1/chat/completions", json={"messages": messages})
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [line["messages"][0]["content"] for line in lines] == ["一", "two"]


async def test_a_client_that_leaves_aborts_the_generation() -> None:
    generator = FakeGenerator(hang=True)
    app = Completions(generator, MODEL, KEY, BodyLog(None))
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": "Hi"}]}).encode()
    incoming = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop()
        await generator.begun.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        await asyncio.sleep(0)

    headers = [(b"authorization", f"Bearer {KEY}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
    await asyncio.wait_for(app(scope, receive, send), 5)
    assert generator.cancelled
