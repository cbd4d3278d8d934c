"""`RouterService`: convert, call the pipeline, convert."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from services.common.errors import InvalidField
from services.common.rpc.call import current_call
from services.common.vocabulary import Reason, StreamMode, Target
from services.router import convert
from services.router.aside.results import LateResults
from services.router.ask import Ask
from services.router.config import RequestLimits
from services.router.embed_text import TextVector, conversation
from services.router.execute.sink import SilentSink
from services.router.execute.trail import Trail
from services.router.experiment import Policies
from services.router.ledger.feedback import FeedbackDesk
from services.router.measure import first_text
from services.router.minds import Minds
from services.router.pipeline import Pipeline
from services.router.policy.plan import Plan
from services.router.policy_store import VersionedPolicy
from services.router.task import recognize
from services.router.tenants import RouterAdmission
from services.router.validate import check_request
from tandem.common.v1 import decision_pb2
from tandem.router.v1 import router_pb2, router_pb2_grpc

_MAX_ID_CHARS = 128
_MODES = {
    router_pb2.STREAM_MODE_UNSPECIFIED: StreamMode.PROVISIONAL,
    router_pb2.STREAM_MODE_HOLD: StreamMode.HOLD,
    router_pb2.STREAM_MODE_COMMIT: StreamMode.COMMIT,
    router_pb2.STREAM_MODE_PROVISIONAL: StreamMode.PROVISIONAL,
}


class RouterServicer(router_pb2_grpc.RouterServiceServicer):
    """The RPCs. Handlers are coroutines; see `services.common.rpc.entrance` for why."""

    def __init__(
        self,
        pipeline: Pipeline,
        admission: RouterAdmission,
        policies: Policies,
        limits: RequestLimits,
        feedback: FeedbackDesk,
        results: LateResults,
        minds: Minds = Minds(),
    ) -> None:
        self._pipeline = pipeline
        self._admission = admission
        self._policies = policies
        self._limits = limits
        self._feedback = feedback
        self._results = results
        self._minds = minds

    async def Route(self, request: router_pb2.RouteRequest, context: Any) -> Any:
        """Answers whole: text is held until it is, so that a caller never sees a draft."""
        ask, policy = self._enter(request, StreamMode.HOLD)
        reply, trail = await self._pipeline.answer(ask, policy, SilentSink())
        current_call().trailers["tandem-decision"] = convert.trailer(reply)
        outcome = convert.outcome(ask, reply, trail, policy.version, time.monotonic())
        return router_pb2.RouteResponse(
            request_id=ask.request_id,
            text=reply.text,
            tool_calls=reply.tool_calls,
            outcome=outcome,
        )

    async def RouteStream(  # type: ignore[override]  # the stub knows generators only
        self, request: router_pb2.RouteStreamRequest, context: Any
    ) -> None:
        """Answers as a stream."""
        ask, policy = self._enter(request.request, StreamMode.PROVISIONAL)
        sink = StreamSink(context, ask, policy.version)
        reply, trail = await self._pipeline.answer(ask, policy, sink)
        current_call().trailers["tandem-decision"] = convert.trailer(reply)
        outcome = convert.outcome(ask, reply, trail, policy.version, time.monotonic())
        final = router_pb2.Final(tool_calls=reply.tool_calls, outcome=outcome)
        await context.write(router_pb2.RouteStreamResponse(final=final))

    async def Decide(self, request: router_pb2.DecideRequest, context: Any) -> Any:
        """Explains; calls no model and records nothing."""
        ask, policy = self._enter(request.request, StreamMode.HOLD)
        facts, plan = self._pipeline.plan(ask, policy, Trail())
        return convert.decide_response(plan, facts, policy.policy, policy.version, time.monotonic())

    async def Feedback(self, request: router_pb2.FeedbackRequest, context: Any) -> Any:
        """Keeps a verdict on a request of the same tenant."""
        tenant = self._admission.tenant(current_call().principal.tenant)
        await self._feedback.take(request, tenant)
        return router_pb2.FeedbackResponse()

    async def GetResult(self, request: router_pb2.GetResultRequest, context: Any) -> Any:
        """The better answer that came after a last-resort reply, of the same tenant."""
        if not 1 <= len(request.request_id) <= _MAX_ID_CHARS:
            raise InvalidField("request_id", f"must have from 1 to {_MAX_ID_CHARS} characters")
        tenant = self._admission.tenant(current_call().principal.tenant)
        return self._results.get(tenant.name, request.request_id)

    def _enter(
        self, request: router_pb2.RouteRequest, loosest: StreamMode
    ) -> tuple[Ask, VersionedPolicy]:
        """The request, checked, and the policy that it is answered by from here to its record."""
        call = current_call()
        check = check_request(request, self._limits)
        tenant = self._admission.tenant(call.principal.tenant)
        session_id = _session(request.session_id, call.session_id)
        chosen = self._policies.choose(tenant.name, session_id or call.request_id)
        policy = chosen.policy.policy
        vector = TextVector(conversation(request), self._minds.embedder)
        mode = policy.stream_mode.stricter(_MODES[request.stream_mode]).stricter(loosest)
        ask = Ask(
            request=request,
            request_id=call.request_id,
            tenant=tenant,
            channel=request.channel or tenant.default_channel,
            session_id=session_id,
            budget=call.budget,
            task_type=recognize(request, policy, self._minds.tasks, vector),
            mode=mode.stricter(tenant.stream_mode or mode),
            check=check,
            free_text=request.output.WhichOneof("form") in (None, "free_text"),
            caller_key=call.principal.key,
            vector=vector,
            arm=chosen.arm,
            candidate=chosen.candidate,
        )
        return ask, chosen.policy


@dataclass(slots=True)
class StreamSink:
    """Writes events to the caller; its flow control holds the model back."""

    context: Any
    ask: Ask
    policy_version: str
    _shown: bool = False

    async def decided(self, plan: Plan) -> None:
        """See `Sink`."""
        event = router_pb2.DecisionEvent(
            request_id=self.ask.request_id,
            decision=convert.planned_decision(plan, self.policy_version),
        )
        await self.context.write(router_pb2.RouteStreamResponse(decision=event))

    async def chunk(self, text: str, target: Target, *, committed: bool) -> None:
        """See `Sink`."""
        if not self._shown:
            self._shown = True
            first_text(self.ask, target, time.monotonic())
        state = (
            router_pb2.CHUNK_STATE_COMMITTED if committed else router_pb2.CHUNK_STATE_PROVISIONAL
        )
        chunk = router_pb2.Chunk(
            text=text, target=decision_pb2.Target.Value(f"TARGET_{target}"), state=state
        )
        await self.context.write(router_pb2.RouteStreamResponse(chunk=chunk))

    async def superseded(self, reason: Reason, target: Target) -> None:
        """See `Sink`."""
        event = router_pb2.Superseded(
            reason=decision_pb2.Reason.Value(f"REASON_{reason}"),
            target=decision_pb2.Target.Value(f"TARGET_{target}"),
        )
        await self.context.write(router_pb2.RouteStreamResponse(superseded=event))


def _session(body: str, header: str) -> str:
    """The body wins; a header that says otherwise is a mistake somewhere."""
    if body and header and body != header:
        raise InvalidField("session_id", "must equal the x-session-id metadata")
    return body or header
