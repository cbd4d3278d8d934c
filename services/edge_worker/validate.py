"""GenerateRequest to `Generation`: every rule that a field can break."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from services.common.errors import InvalidField, Unimplemented
from services.edge_worker.chat_template import Role, Turn
from services.edge_worker.config import LimitSettings, SamplingSettings
from services.edge_worker.output_contract import read_output
from services.edge_worker.request import Generation
from services.edge_worker.sampling import SamplingParams
from services.edge_worker.scheduler.plan import LaneName
from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2

MAX_TEMPERATURE: Final = 2.0
MAX_TOP_LOGPROBS: Final = 5
_MAX_ID_CHARS: Final = 128
_ROLES: Final[dict[int, Role]] = {
    chat_pb2.ROLE_USER: "user",
    chat_pb2.ROLE_ASSISTANT: "assistant",
    chat_pb2.ROLE_TOOL: "tool",
}
LANES: Final[dict[int, LaneName | None]] = {
    edge_pb2.LANE_UNSPECIFIED: None,
    edge_pb2.LANE_SIMPLE: LaneName.SIMPLE,
    edge_pb2.LANE_COMPLEX: LaneName.COMPLEX,
}


def read_generate(
    request: edge_pb2.GenerateRequest, limits: LimitSettings, defaults: SamplingSettings
) -> Generation:
    """Checks a request.

    Raises:
        InvalidField: Names the field and what is allowed.
        Unimplemented: A part of the contract that this worker does not have yet.
    """
    _check_text(request, limits)
    max_tokens, min_tokens = _lengths(request, limits)
    sampling = request.sampling
    generation = Generation(
        request_id=_identifier("request_id", request.request_id, _MAX_ID_CHARS),
        tenant=_identifier("tenant", request.tenant, limits.max_tenant_chars),
        lane=_lane(request.lane),
        system=request.system,
        turns=(
            *read_turns("few_shot", request.few_shot),
            *read_turns("messages", request.messages),
        ),
        sampling=_sampling(sampling, defaults),
        seed=sampling.seed if sampling.HasField("seed") else None,
        stops=_stops(sampling.stop, limits),
        max_output_tokens=max_tokens,
        min_output_tokens=min_tokens,
        logprobs=request.logprobs,
        top_logprobs=_top_logprobs(request),
        form=read_output(request.output, limits),
        samples=_samples(request, limits),
    )
    _refuse_absent(request)
    return generation


def _check_text(request: edge_pb2.GenerateRequest, limits: LimitSettings) -> None:
    if not request.messages:
        raise InvalidField("messages", "must hold at least one turn")
    turns = len(request.messages) + len(request.few_shot)
    if turns > limits.max_messages:
        raise InvalidField(
            "messages", f"{turns} turns with few_shot; at most {limits.max_messages} are allowed"
        )
    chars = len(request.system) + sum(
        len(turn.content) for turn in (*request.few_shot, *request.messages)
    )
    if chars > limits.max_text_chars:
        raise InvalidField(
            "messages",
            f"{chars} characters with system and few_shot; "
            f"at most {limits.max_text_chars} are allowed",
        )


def read_turns(field: str, messages: Sequence[chat_pb2.Message]) -> tuple[Turn, ...]:
    """Turns of `field`; InvalidField for a bad role or no content."""
    return tuple(_turn(f"{field}[{i}]", message) for i, message in enumerate(messages))


def _turn(path: str, message: chat_pb2.Message) -> Turn:
    role = _ROLES.get(message.role)
    if role is None:
        raise InvalidField(f"{path}.role", "must be ROLE_USER, ROLE_ASSISTANT or ROLE_TOOL")
    if message.tool_calls:
        raise Unimplemented(f"{path}.tool_calls: this edge model has no tools")
    if not message.content:
        raise InvalidField(f"{path}.content", "must not be empty")
    return Turn(role, message.content)


def _lane(value: int) -> LaneName | None:
    if value not in LANES:
        raise InvalidField("lane", "must be LANE_UNSPECIFIED, LANE_SIMPLE or LANE_COMPLEX")
    return LANES[value]


def _lengths(request: edge_pb2.GenerateRequest, limits: LimitSettings) -> tuple[int, int]:
    longest = limits.max_output_tokens
    if not 0 <= request.max_output_tokens <= longest:
        raise InvalidField("max_output_tokens", f"must be from 0 to {longest}")
    cap = request.max_output_tokens or limits.default_output_tokens
    if not 0 <= request.min_output_tokens <= cap:
        raise InvalidField("min_output_tokens", f"must be from 0 to max_output_tokens ({cap})")
    return request.max_output_tokens, request.min_output_tokens


def _sampling(sampling: chat_pb2.Sampling, defaults: SamplingSettings) -> SamplingParams:
    temperature = sampling.temperature if sampling.HasField("temperature") else defaults.temperature
    top_p = sampling.top_p if sampling.HasField("top_p") else defaults.top_p
    top_k = sampling.top_k if sampling.HasField("top_k") else defaults.top_k
    # Written so that NaN fails too.
    if not 0.0 <= temperature <= MAX_TEMPERATURE:
        raise InvalidField("sampling.temperature", f"must be from 0 to {MAX_TEMPERATURE:g}")
    if not 0.0 < top_p <= 1.0:
        raise InvalidField("sampling.top_p", "must be above 0 and at most 1")
    if top_k < 0:
        raise InvalidField("sampling.top_k", "must be 0 or more")
    return SamplingParams(temperature, top_p, top_k)


def _stops(stops: Sequence[str], limits: LimitSettings) -> tuple[str, ...]:
    if len(stops) > limits.max_stop_strings:
        raise InvalidField("sampling.stop", f"must hold at most {limits.max_stop_strings} strings")
    for i, stop in enumerate(stops):
        if not 1 <= len(stop) <= limits.max_stop_chars:
            raise InvalidField(
                f"sampling.stop[{i}]", f"must have 1 to {limits.max_stop_chars} characters"
            )
    return tuple(stops)


def _top_logprobs(request: edge_pb2.GenerateRequest) -> int:
    if not 0 <= request.top_logprobs <= MAX_TOP_LOGPROBS:
        raise InvalidField("top_logprobs", f"must be from 0 to {MAX_TOP_LOGPROBS}")
    if request.top_logprobs and not request.logprobs:
        raise InvalidField("top_logprobs", "needs logprobs")
    return request.top_logprobs


def _samples(request: edge_pb2.GenerateRequest, limits: LimitSettings) -> int:
    if not 0 <= request.samples <= limits.max_samples:
        raise InvalidField("samples", f"must be from 0 to {limits.max_samples}")
    return max(1, request.samples)


def _identifier(field: str, value: str, longest: int) -> str:
    if len(value) > longest or not value.isprintable():
        raise InvalidField(field, f"must be at most {longest} printable characters")
    return value


def _refuse_absent(request: edge_pb2.GenerateRequest) -> None:
    if request.tools:
        raise Unimplemented("tools: this edge model has no tools")
