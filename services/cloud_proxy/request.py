"""A request to a large model, generic in what its text is.

`ChatRequest[str]` is what a caller sent; `ChatRequest[ClearedText]` may leave.
Providers take only the latter, so the type checker holds that nothing leaves
unscreened. Every string that a provider would see is of the text type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Tier(StrEnum):
    """Which size of model."""

    SMALL = "small"
    LARGE = "large"


class Role(StrEnum):
    """Who speaks, as providers name it."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall(Generic[T]):
    """A call of a tool; `arguments` is JSON text."""

    id: T
    name: T
    arguments: T


@dataclass(frozen=True, slots=True)
class Turn(Generic[T]):
    """One message; `tool_call_id` only for `Role.TOOL`."""

    role: Role
    content: T
    tool_calls: tuple[ToolCall[T], ...]
    tool_call_id: T


@dataclass(frozen=True, slots=True)
class Tool(Generic[T]):
    """A tool on offer; `parameters` is a JSON schema as text, or empty."""

    name: T
    description: T
    parameters: T


@dataclass(frozen=True, slots=True)
class Output(Generic[T]):
    """The form asked for; all empty: free text."""

    labels: tuple[T, ...] = ()
    json_schema: T | None = None
    regex: T | None = None


@dataclass(frozen=True, slots=True)
class Sampling(Generic[T]):
    """How tokens are drawn; None leaves it to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[T, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest(Generic[T]):
    """One request. `max_output_tokens` 0 means the tier's cap."""

    tier: Tier
    system: T
    few_shot: tuple[Turn[T], ...]
    messages: tuple[Turn[T], ...]
    tools: tuple[Tool[T], ...]
    output: Output[T]
    sampling: Sampling[T]
    max_output_tokens: int


def map_text(request: ChatRequest[T], change: Callable[[str, T], U]) -> ChatRequest[U]:
    """The same request with each text replaced by `change(field path, text)`."""
    output = request.output
    return ChatRequest(
        tier=request.tier,
        system=change("system", request.system),
        few_shot=_turns("few_shot", request.few_shot, change),
        messages=_turns("messages", request.messages, change),
        tools=tuple(
            Tool(
                change(f"tools[{i}].name", tool.name),
                change(f"tools[{i}].description", tool.description),
                change(f"tools[{i}].parameters_json_schema", tool.parameters),
            )
            for i, tool in enumerate(request.tools)
        ),
        output=Output(
            _each("output.labels.values", output.labels, change),
            _maybe("output.json_schema", output.json_schema, change),
            _maybe("output.regex", output.regex, change),
        ),
        sampling=Sampling(
            temperature=request.sampling.temperature,
            top_p=request.sampling.top_p,
            top_k=request.sampling.top_k,
            seed=request.sampling.seed,
            stop=_each("sampling.stop", request.sampling.stop, change),
        ),
        max_output_tokens=request.max_output_tokens,
    )


def texts(request: ChatRequest[T]) -> Iterator[T]:
    """Every text of a request, in the order of `map_text`."""
    found: list[T] = []

    def keep(_: str, text: T) -> None:
        found.append(text)

    map_text(request, keep)
    return iter(found)


def _turns(
    path: str, turns: tuple[Turn[T], ...], change: Callable[[str, T], U]
) -> tuple[Turn[U], ...]:
    return tuple(_turn(f"{path}[{i}]", turn, change) for i, turn in enumerate(turns))


def _turn(path: str, turn: Turn[T], change: Callable[[str, T], U]) -> Turn[U]:
    calls = tuple(
        ToolCall(
            change(f"{path}.tool_calls[{i}].id", call.id),
            change(f"{path}.tool_calls[{i}].name", call.name),
            change(f"{path}.tool_calls[{i}].arguments_json", call.arguments),
        )
        for i, call in enumerate(turn.tool_calls)
    )
    content = change(f"{path}.content", turn.content)
    return Turn(turn.role, content, calls, change(f"{path}.tool_call_id", turn.tool_call_id))


def _each(path: str, values: tuple[T, ...], change: Callable[[str, T], U]) -> tuple[U, ...]:
    return tuple(change(f"{path}[{i}]", value) for i, value in enumerate(values))


def _maybe(path: str, value: T | None, change: Callable[[str, T], U]) -> U | None:
    return None if value is None else change(path, value)
