"""The gRPC face: checks, converts, calls the pipeline, converts back."""

from __future__ import annotations

import time
from typing import Any

from services.cloud_proxy.convert import read_request
from services.cloud_proxy.pipeline import Pipeline, Result
from services.cloud_proxy.record import TierFacts, ttft_ms
from services.common.rpc.call import Call, current_call
from services.common.vocabulary import FinishReason
from tandem.cloud.v1 import cloud_pb2, cloud_pb2_grpc
from tandem.common.v1 import chat_pb2

SERVICE_NAME = cloud_pb2.DESCRIPTOR.services_by_name["CloudProxyService"].full_name
_FINISH = {
    reason: chat_pb2.FinishReason.Value(f"FINISH_REASON_{reason.value}") for reason in FinishReason
}


class CloudProxyServicer(cloud_pb2_grpc.CloudProxyServiceServicer):
    """`tandem.cloud.v1.CloudProxyService`."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def Generate(  # type: ignore[override]
        self, request: cloud_pb2.GenerateRequest, context: Any
    ) -> None:
        """Streams started, deltas, finished; writes, so that a cancel unwinds at once."""
        call = current_call()
        result = await self._pipeline.generate(call, read_request(request), _Writer(context))
        await context.write(cloud_pb2.GenerateResponse(finished=_finished(call, result)))


class _Writer:
    """The pipeline's `Answer`, written to a gRPC stream."""

    def __init__(self, context: Any) -> None:
        self._context = context

    async def started(self, facts: TierFacts, model_id: str, tries: int) -> None:
        started = cloud_pb2.Started(
            provider=facts.provider,
            model_id=model_id,
            standin=facts.standin,
            provider_calls=tries,
        )
        await self._context.write(cloud_pb2.GenerateResponse(started=started))

    async def delta(self, text: str) -> None:
        await self._context.write(cloud_pb2.GenerateResponse(delta=cloud_pb2.Delta(text=text)))


def _finished(call: Call, result: Result) -> cloud_pb2.Finished:
    progress, completion = result.progress, result.completion
    first_ms = ttft_ms(call, progress)
    total_ms = call.budget.spent_ms(time.monotonic())
    return cloud_pb2.Finished(
        finish_reason=_FINISH[completion.finish],
        usage=chat_pb2.Usage(
            input_tokens=progress.tokens.input,
            cached_input_tokens=progress.tokens.cached_input,
            output_tokens=progress.tokens.output,
            cost_micro_usd=progress.cost_micro_usd,
            estimated=progress.tokens.estimated,
        ),
        timings=chat_pb2.Timings(
            ttft_ms=first_ms,
            total_ms=total_ms,
            decode_ms=max(0.0, total_ms - first_ms) if first_ms else 0.0,
        ),
        tool_calls=[
            chat_pb2.ToolCall(id=c.id, name=c.name, arguments_json=c.arguments)
            for c in completion.tool_calls
        ],
        mean_logprob=completion.mean_logprob,
    )
