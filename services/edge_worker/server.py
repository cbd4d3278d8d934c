"""The gRPC face of the worker: convert, call the pipeline, convert."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import grpc

from services.common.errors import Draining, Unimplemented
from services.common.rpc.call import current_call
from services.edge_worker.classify import ClassifyPipeline
from services.edge_worker.config import EdgeSettings
from services.edge_worker.embed.batcher import EmbedBatcher
from services.edge_worker.engine import Engine
from services.edge_worker.events import DeltaEvent, Event, FinishedEvent, StartedEvent
from services.edge_worker.load import WIRE_LANES, read_interval_s, report_load
from services.edge_worker.pipeline import GeneratePipeline, Ticket
from services.edge_worker.runtime.base import ModelInfo
from services.edge_worker.validate import read_generate
from services.edge_worker.validate_classify import read_classify
from services.edge_worker.validate_embed import read_embed
from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2, edge_pb2_grpc


class EdgeServicer(edge_pb2_grpc.EdgeWorkerServiceServicer):
    """Serves once `open` was called; refuses before.

    Streaming methods are coroutines that write, not generators; see entrance.py.
    """

    def __init__(self, settings: EdgeSettings) -> None:
        self._settings = settings
        self._draining = asyncio.Event()
        self._parts: tuple[GeneratePipeline, Engine, ModelInfo] | None = None
        self._classify: ClassifyPipeline | None = None
        self._embedder: EmbedBatcher | None = None

    def open(
        self,
        generate: GeneratePipeline,
        classify: ClassifyPipeline,
        embedder: EmbedBatcher | None,
        engine: Engine,
        info: ModelInfo,
        draining: asyncio.Event,
    ) -> None:
        """The model is warm: take calls. Load is told until `draining` is set."""
        self._parts = (generate, engine, info)
        self._classify = classify
        self._embedder = embedder
        self._draining = draining

    async def Generate(  # type: ignore[override]
        self, request: edge_pb2.GenerateRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> None:
        generate, _, _ = self._ready()
        wanted = read_generate(request, self._settings.limits, self._settings.sampling)

        async def send(ticket: Ticket, event: Event) -> None:
            await context.write(_response(ticket, event))

        await generate.run(wanted, current_call().budget, send)

    async def WatchLoad(  # type: ignore[override]
        self, request: edge_pb2.WatchLoadRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> None:
        _, engine, info = self._ready()
        interval_s = read_interval_s(request)
        while not self._draining.is_set():
            await context.write(report_load(engine, info))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._draining.wait(), interval_s)

    async def Embed(
        self, request: edge_pb2.EmbedRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> edge_pb2.EmbedResponse:
        if self._embedder is None:
            raise Unimplemented("Embed: this worker has no embedder; set embed.model_dir")
        texts = read_embed(request, self._settings.embed)
        vectors = await self._embedder.embed(texts, current_call().budget)
        embeddings = [
            edge_pb2.Embedding(values=one.values.tolist(), unknown_share=one.unknown_share)
            for one in vectors
        ]
        return edge_pb2.EmbedResponse(embeddings=embeddings, model_id=self._embedder.model_id)

    async def Classify(
        self, request: edge_pb2.ClassifyRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> edge_pb2.ClassifyResponse:
        _, _, info = self._ready()
        wanted = read_classify(request, self._settings.limits)
        pairs = await self._classifier().run(wanted, current_call().budget)
        labels = [edge_pb2.LabelProbability(label=one, probability=p) for one, p in pairs]
        return edge_pb2.ClassifyResponse(labels=labels, model_id=info.model_id)

    def _classifier(self) -> ClassifyPipeline:
        if self._classify is None:
            raise Draining("the edge model is not loaded yet")
        return self._classify

    def _ready(self) -> tuple[GeneratePipeline, Engine, ModelInfo]:
        if self._parts is None:
            raise Draining("the edge model is not loaded yet")
        return self._parts


def _response(ticket: Ticket, event: Event) -> edge_pb2.GenerateResponse:
    if isinstance(event, StartedEvent):
        return edge_pb2.GenerateResponse(started=_started(ticket, event))
    if isinstance(event, DeltaEvent):
        return edge_pb2.GenerateResponse(delta=_delta(event))
    if isinstance(event, FinishedEvent):
        return edge_pb2.GenerateResponse(finished=_finished(ticket, event))
    raise TypeError(f"{type(event).__name__} is not sent")


def _started(ticket: Ticket, event: StartedEvent) -> edge_pb2.Started:
    return edge_pb2.Started(
        model_id=ticket.model_id,
        lane=WIRE_LANES[ticket.lane],
        input_tokens=ticket.input_tokens,
        queue_ms=(event.at - ticket.queued_at) * 1000.0,
    )


def _delta(event: DeltaEvent) -> edge_pb2.Delta:
    delta = edge_pb2.Delta(sample=event.sample, text=event.text)
    for token in event.tokens:
        added = delta.tokens.add(id=token.id, logprob=token.logprob)
        for other, logprob in token.alternatives:
            added.alternatives.add(id=other, logprob=logprob)
    return delta


def _finished(ticket: Ticket, event: FinishedEvent) -> edge_pb2.Finished:
    # The prompt is counted once, so that the sum over samples is what was computed.
    prompt = ticket.input_tokens if event.sample == 0 else 0
    return edge_pb2.Finished(
        sample=event.sample,
        finish_reason=chat_pb2.FinishReason.Value(f"FINISH_REASON_{event.reason.value}"),
        usage=chat_pb2.Usage(input_tokens=prompt, output_tokens=event.output_tokens),
        timings=chat_pb2.Timings(
            ttft_ms=(event.first_token_at - ticket.received_at) * 1000.0,
            total_ms=(event.at - ticket.received_at) * 1000.0,
            queue_ms=(event.started_at - ticket.queued_at) * 1000.0,
            prefill_ms=(event.first_token_at - event.started_at) * 1000.0,
            decode_ms=(event.at - event.first_token_at) * 1000.0,
        ),
        mean_logprob=event.mean_logprob,
        min_logprob=event.min_logprob,
        mean_margin=event.mean_margin,
    )
