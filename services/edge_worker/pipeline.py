"""The way of one `Generate`: prompt, place, stream, record."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from services.common.deadline import Budget
from services.common.errors import InvalidField, TandemError
from services.edge_worker.answer import Answer, AnswerSpec
from services.edge_worker.config import LimitSettings, StreamSettings
from services.edge_worker.engine import Engine
from services.edge_worker.events import Event, FinishedEvent
from services.edge_worker.form_desk import FormDesk
from services.edge_worker.held import HeldForm
from services.edge_worker.job import Job
from services.edge_worker.model import LoadedModel
from services.edge_worker.outlet import Outlet
from services.edge_worker.placing import Lanes, build_prompt, choose_lane, room_tokens
from services.edge_worker.record import Outcome, Recorder
from services.edge_worker.request import Generation
from services.edge_worker.sampling import sample_seed
from services.edge_worker.scheduler.plan import LaneName


@dataclass(frozen=True, slots=True)
class Ticket:
    """What stays the same over all events of one request.

    Attributes:
        received_at: Monotonic seconds.
        queued_at: Entered the lane's queue.
    """

    model_id: str
    lane: LaneName
    input_tokens: int
    received_at: float
    queued_at: float


Send = Callable[[Ticket, Event], Awaitable[None]]


class GeneratePipeline:
    """Runs requests on the engine."""

    def __init__(
        self,
        model: LoadedModel,
        engine: Engine,
        lanes: Lanes,
        limits: LimitSettings,
        stream: StreamSettings,
        recorder: Recorder,
    ) -> None:
        self._model = model
        self._engine = engine
        self._lanes = lanes
        self._limits = limits
        self._stream = stream
        self._recorder = recorder
        self._forms = FormDesk(model.compile_form)

    async def run(self, request: Generation, budget: Budget, send: Send) -> None:
        """Sends Started, deltas and Finished.

        Raises:
            InvalidField, ContextTooLong: The request cannot run.
            QueueFull, DeadlineExceeded: Not now, or not in time.
            SlowReader, EngineFailed: It was cut off.
        """
        held = await self._forms.ready(request.form, budget)
        long = request.chars > self._limits.off_loop_chars
        prompt = await build_prompt(
            self._model.prompts, request.turns, request.system, off_loop=long
        )
        outlet = self._outlet(lambda: self._engine.abort(job))
        job = self._job(request, held, prompt, budget, outlet)
        ticket = self._ticket(job, budget)
        outcome = Outcome.cancelled()
        try:
            self._engine.submit(job)
            running = request.samples
            while running:
                event = await outlet.get()
                await send(ticket, event)
                if isinstance(event, FinishedEvent):
                    running -= 1
                    outcome = Outcome.of(event) if not running else outcome
        except TandemError as error:
            outcome = Outcome.refused(error.reason)
            raise
        finally:
            self._engine.abort(job)
            self._recorder.record(request, ticket, job, outcome)

    def _outlet(self, on_overflow: Callable[[], None]) -> Outlet:
        return Outlet(self._stream.max_pending_events, self._stream.max_pending_bytes, on_overflow)

    def close(self) -> None:
        """After the last call."""
        self._forms.close()

    def _job(
        self,
        request: Generation,
        held: HeldForm,
        prompt: tuple[int, ...],
        budget: Budget,
        outlet: Outlet,
    ) -> Job:
        cap = self._cap(request, held)
        lane = request.lane or choose_lane(self._lanes, len(prompt), cap)
        least = max(1, request.min_output_tokens)
        # An answer's cap is cut to the room there is, silently.
        room = room_tokens(self._lanes[lane], len(prompt), least, request.samples)
        max_tokens = min(cap, room)
        return Job(
            lane=lane,
            tenant=request.tenant,
            prompt=prompt,
            max_tokens=max_tokens,
            expires_at=budget.expires_at,
            answers=self._answers(request, held, max_tokens),
            sink=outlet,
        )

    def _answers(self, request: Generation, held: HeldForm, max_tokens: int) -> tuple[Answer, ...]:
        spec = AnswerSpec(
            sampling=request.sampling,
            seed=_seed(request.seed),
            max_tokens=max_tokens,
            # A form alone says where its answer ends.
            min_tokens=0 if request.form else request.min_output_tokens,
            stops=() if request.form else request.stops,
            logprobs=request.logprobs,
            top_logprobs=request.top_logprobs,
            end_ids=self._model.runtime.info.eos_ids,
        )
        specs = [
            replace(spec, sample=index, seed=sample_seed(spec.seed, index))
            for index in range(request.samples)
        ]
        return tuple(Answer(one, self._model.new_decoder(), held.start()) for one in specs)

    def _cap(self, request: Generation, held: HeldForm) -> int:
        asked, longest = request.max_output_tokens, held.longest_tokens
        if longest is None:
            return asked or self._limits.default_output_tokens
        if asked and asked < longest:
            raise InvalidField("max_output_tokens", f"the longest label needs {longest} tokens")
        return longest

    def _ticket(self, job: Job, budget: Budget) -> Ticket:
        return Ticket(
            model_id=self._model.runtime.info.model_id,
            lane=job.lane,
            input_tokens=len(job.prompt),
            received_at=budget.received_at,
            queued_at=time.monotonic(),
        )


def _seed(asked: int | None) -> int:
    """PCG64 takes no negative seed; two's complement keeps different seeds different."""
    return secrets.randbits(63) if asked is None else asked % 2**64
