"""Who may call, and what may leave."""

from __future__ import annotations

import time
from typing import Any

import grpc
import pytest

from services.common.identity import CLAIM_KEY, service_token, sign_claim
from services.common.rpc.status import error_from_rpc
from tandem.common.v1 import chat_pb2
from tests.fakes.upstream_process import UpstreamProcess
from tests.integration.cloud_proxy.conftest import SECRET, MakeProxy
from tests.integration.cloud_proxy.test_failures import fails

EMAIL = "zhang.wei@example.com"
TOKEN = ("authorization", f"Bearer {service_token(SECRET, 'router')}")


def claim(tenant: str = "acme", secret: str = SECRET, age_s: float = 0) -> tuple[str, str]:
    return (CLAIM_KEY, sign_claim(secret, tenant, time.time() - age_s))


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        (TOKEN,),
        (claim(),),
        (("authorization", f"Bearer {SECRET}"), claim()),
        (("authorization", f"Bearer {service_token(SECRET, 'edge')}"), claim()),
        (TOKEN, claim(secret="another-secret-another-secret-another")),
        (TOKEN, claim(age_s=600)),
        (TOKEN, (CLAIM_KEY, "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhY21lIn0.")),
    ],
)
async def test_only_the_router_with_a_fresh_claim_gets_in(
    make_proxy: MakeProxy, upstream: UpstreamProcess, metadata: Any
) -> None:
    status, error, _ = await fails(await make_proxy(), metadata=metadata)
    assert (status.name, error.remote_reason) == ("UNAUTHENTICATED", "UNAUTHENTICATED")
    assert upstream.seen() == []


def _everywhere() -> list[tuple[str, dict[str, Any]]]:
    turn = chat_pb2.Message(role=chat_pb2.ROLE_USER, content="hi")
    shown = chat_pb2.Message(role=chat_pb2.ROLE_USER, content=EMAIL)
    call = chat_pb2.ToolCall(id="c1", name="send", arguments_json=f'{{"to": "{EMAIL}"}}')
    asks = chat_pb2.Message(role=chat_pb2.ROLE_ASSISTANT, tool_calls=[call])
    schema = f'{{"description": "{EMAIL}"}}'
    contract = chat_pb2.OutputContract
    return [
        ("messages[0].content", {"text": f"write to {EMAIL}"}),
        ("system", {"system": EMAIL}),
        (
            "few_shot[0].content",
            {"few_shot": [shown]},
        ),
        ("messages[1].tool_calls[0].arguments_json", {"messages": [turn, asks]}),
        ("tools[0].description", {"tools": [chat_pb2.Tool(name="a", description=EMAIL)]}),
        (
            "tools[0].parameters_json_schema",
            {"tools": [chat_pb2.Tool(name="a", parameters_json_schema=schema)]},
        ),
        (
            "output.labels.values[1]",
            {"output": contract(labels=chat_pb2.Labels(values=["a", EMAIL]))},
        ),
        ("output.json_schema", {"output": contract(json_schema=schema)}),
        ("output.regex", {"output": contract(regex=EMAIL)}),
        ("sampling.stop[0]", {"sampling": chat_pb2.Sampling(stop=[EMAIL])}),
    ]


@pytest.mark.parametrize(("path", "fields"), _everywhere())
async def test_personal_data_is_refused_wherever_it_stands(
    make_proxy: MakeProxy, upstream: UpstreamProcess, path: str, fields: dict[str, Any]
) -> None:
    status, error, _ = await fails(await make_proxy(pii="refuse"), **fields)
    assert (status.name, error.remote_reason) == ("PERMISSION_DENIED", "PII_BLOCKED")
    assert "EMAIL" in error.message
    assert path in error.message
    assert EMAIL not in error.message
    assert upstream.seen() == []


async def test_an_explicit_allow_lets_it_through(
    make_proxy: MakeProxy, upstream: UpstreamProcess
) -> None:
    await (await make_proxy(pii="allow")).collect(f"write to {EMAIL}")
    assert EMAIL in upstream.seen()[0]["body"]["messages"][0]["content"]


async def test_no_text_and_no_key_in_the_log(
    make_proxy: MakeProxy, upstream: UpstreamProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    proxy = await make_proxy()
    upstream.script({"text": "pineapple answer"}, {"status": 401})
    await proxy.collect("mango question")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await proxy.collect("mango question")
    assert error_from_rpc(caught.value).remote_reason == "UPSTREAM_REFUSED"
    out, err = capfd.readouterr()
    assert "upstream_call" in out + err
    for secret in ("mango", "pineapple", "sk-provider", SECRET, "leaked-key"):
        assert secret not in out + err
