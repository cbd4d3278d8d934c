"""The edge worker as a target."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from services.common.rpc.outward import open_call
from services.common.vocabulary import Level
from services.router.targets.base import Began, Done, Job, ModelEvent, Piece
from services.router.targets.prompting import recent_turns, system_text
from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2, edge_pb2_grpc

_GENERATE = "tandem.edge.v1.EdgeWorkerService/Generate"
_CLASSIFY = "tandem.edge.v1.EdgeWorkerService/Classify"
_YES, _NO = "yes", "no"
_IS_IT_RIGHT = "Is the answer to the question right? Say yes if it is right, no if it is wrong."


class EdgeTarget:
    """Calls `Generate` on the worker's channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub: Any = edge_pb2_grpc.EdgeWorkerServiceStub(channel)

    @asynccontextmanager
    async def open(self, job: Job) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        """See `ModelTarget.open`."""
        async with open_call(
            self._stub.Generate,
            self._request(job),
            name=_GENERATE,
            budget=job.ask.budget,
            cap_ms=job.limit_ms,
            request_id=job.ask.request_id,
        ) as stream:
            yield _events(stream)

    async def sample(self, job: Job, count: int, temperature: float) -> list[str]:
        """Whole answers to the same question, drawn at `temperature`; they share one prefill.

        Raises:
            RemoteError: The worker failed or refused.
        """
        request = self._request(job)
        request.samples = count
        request.sampling.temperature = temperature
        texts = [""] * count
        async with open_call(
            self._stub.Generate,
            request,
            name=_GENERATE,
            budget=job.ask.budget,
            cap_ms=job.limit_ms,
            request_id=job.ask.request_id,
        ) as stream:
            async for response in stream:
                if response.WhichOneof("event") == "delta":
                    texts[response.delta.sample] += response.delta.text
        return texts

    async def self_report(self, job: Job, text: str) -> float:
        """The model's own probability that `text` answers the last turn rightly.

        P(True) of Kadavath et al. 2022 (arXiv 2207.05221): one prefill, normalized over two
        labels.

        Raises:
            RemoteError: The worker failed or refused.
        """
        question = job.ask.request.messages[-1].content
        request = edge_pb2.ClassifyRequest(
            text=f"Question: {question}\n\nAnswer: {text}",
            labels=chat_pb2.Labels(values=[_YES, _NO]),
            instruction=_IS_IT_RIGHT,
        )
        async with open_call(
            self._stub.Classify,
            request,
            name=_CLASSIFY,
            budget=job.ask.budget,
            cap_ms=job.limit_ms,
            request_id=job.ask.request_id,
        ) as call:
            response = await call
        return next(float(one.probability) for one in response.labels if one.label == _YES)

    def _request(self, job: Job) -> edge_pb2.GenerateRequest:
        request, degraded = job.ask.request, job.level is Level.L1
        turns = request.messages
        if degraded:
            turns = recent_turns(turns, job.context_tokens)  # type: ignore[assignment]
        return edge_pb2.GenerateRequest(
            request_id=job.ask.request_id,
            tenant=job.ask.tenant.name,
            lane=edge_pb2.LANE_SIMPLE if job.simple_lane else edge_pb2.LANE_COMPLEX,
            system=system_text(request, spell_out_form=True),
            few_shot=() if degraded else request.few_shot,
            messages=turns,
            # The worker holds the answer to the form; the text above says what to write in it.
            output=request.output if request.HasField("output") else None,
            sampling=request.sampling if request.HasField("sampling") else None,
            max_output_tokens=max(1, job.max_output_tokens // (2 if degraded else 1)),
        )


async def _events(stream: Any) -> AsyncIterator[ModelEvent]:
    async for response in stream:
        kind = response.WhichOneof("event")
        if kind == "delta":
            yield Piece(response.delta.text)
        elif kind == "started":
            yield Began(response.started.model_id)
        elif kind == "finished":
            end = response.finished
            yield Done(
                end.finish_reason,
                end.usage,
                tuple(end.tool_calls),
                mean_logprob=end.mean_logprob,
                min_logprob=end.min_logprob,
            )
