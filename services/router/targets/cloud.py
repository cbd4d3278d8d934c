"""The cloud proxy as a target, one object a tier."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from services.common.identity import CLAIM_KEY, service_token, sign_claim
from services.common.rpc.outward import open_call
from services.common.vocabulary import Target
from services.router.targets.base import Began, Done, Job, ModelEvent, Piece
from services.router.targets.prompting import system_text
from tandem.cloud.v1 import cloud_pb2, cloud_pb2_grpc

_METHOD = "tandem.cloud.v1.CloudProxyService/Generate"
_TIERS = {Target.CLOUD_SMALL: cloud_pb2.TIER_SMALL, Target.CLOUD_LARGE: cloud_pb2.TIER_LARGE}


class CloudTarget:
    """Calls `Generate` on the proxy's channel for one tier."""

    def __init__(self, channel: grpc.aio.Channel, target: Target, secret: str) -> None:
        self._stub: Any = cloud_pb2_grpc.CloudProxyServiceStub(channel)
        self._tier = _TIERS[target]
        self._secret = secret
        self._authorization = f"Bearer {service_token(secret, 'router')}"

    @asynccontextmanager
    async def open(self, job: Job) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        """See `ModelTarget.open`."""
        ask = job.ask
        claim = sign_claim(self._secret, ask.tenant.name, time.time(), ask.caller_key)
        async with open_call(
            self._stub.Generate,
            self._request(job),
            name=_METHOD,
            budget=job.ask.budget,
            cap_ms=job.limit_ms,
            request_id=job.ask.request_id,
            metadata=(("authorization", self._authorization), (CLAIM_KEY, claim)),
        ) as stream:
            yield _events(stream)

    def _request(self, job: Job) -> cloud_pb2.GenerateRequest:
        request = job.ask.request
        return cloud_pb2.GenerateRequest(
            request_id=job.ask.request_id,
            tier=self._tier,
            # The proxy spells out or sets the form, as its provider allows.
            system=system_text(request, spell_out_form=False),
            few_shot=request.few_shot,
            messages=request.messages,
            tools=request.tools,
            output=request.output if request.HasField("output") else None,
            sampling=request.sampling if request.HasField("sampling") else None,
            max_output_tokens=job.max_output_tokens,
        )


async def _events(stream: Any) -> AsyncIterator[ModelEvent]:
    async for response in stream:
        kind = response.WhichOneof("event")
        if kind == "delta":
            yield Piece(response.delta.text)
        elif kind == "started":
            yield Began(response.started.model_id, response.started.standin)
        elif kind == "finished":
            end = response.finished
            logprob = end.mean_logprob if end.HasField("mean_logprob") else None
            yield Done(end.finish_reason, end.usage, tuple(end.tool_calls), logprob)
