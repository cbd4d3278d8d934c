"""Every rule of a GenerateRequest, by name of the field."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.common.errors import InvalidField, Unimplemented
from services.edge_worker.config import LimitSettings, SamplingSettings
from services.edge_worker.form import LabelForm, RegexForm, SchemaForm
from services.edge_worker.request import Generation
from services.edge_worker.scheduler.plan import LaneName
from services.edge_worker.validate import read_generate
from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2

Change = Callable[[edge_pb2.GenerateRequest], object]
LIMITS = LimitSettings(max_text_chars=100, max_messages=3, max_output_tokens=50)


def read(change: Change) -> Generation:
    request = edge_pb2.GenerateRequest(
        tenant="t", messages=[chat_pb2.Message(role=chat_pb2.ROLE_USER, content="hi")]
    )
    change(request)
    return read_generate(request, LIMITS, SamplingSettings())


def sampling(**fields: object) -> Change:
    return lambda r: r.sampling.MergeFrom(chat_pb2.Sampling(**fields))  # type: ignore[arg-type]


def fields(**values: object) -> Change:
    return lambda r: r.MergeFrom(edge_pb2.GenerateRequest(**values))  # type: ignore[arg-type]


def output(**form: object) -> Change:
    return lambda r: r.output.MergeFrom(chat_pb2.OutputContract(**form))  # type: ignore[arg-type]


def message(role: int = 1, content: str = "x", **more: object) -> Change:
    return lambda r: r.messages.add(role=role, content=content, **more)


def labels(*values: str) -> Change:
    return output(labels=chat_pb2.Labels(values=values))


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("messages", lambda r: r.ClearField("messages")),
        ("messages", lambda r: [r.few_shot.add(role=1, content="x") for _ in range(3)]),
        ("messages", message(content="x" * 200)),
        ("messages", fields(system="x" * 99)),
        ("messages[1].role", message(role=0)),
        ("messages[1].role", message(role=77)),
        ("messages[1].content", message(content="")),
        ("few_shot[0].role", lambda r: r.few_shot.add(content="x")),
        ("lane", fields(lane=9)),
        ("max_output_tokens", fields(max_output_tokens=-1)),
        ("max_output_tokens", fields(max_output_tokens=51)),
        ("min_output_tokens", fields(min_output_tokens=-1)),
        ("min_output_tokens", fields(max_output_tokens=4, min_output_tokens=5)),
        ("samples", fields(samples=-1)),
        ("samples", fields(samples=6)),
        ("top_logprobs", fields(logprobs=True, top_logprobs=6)),
        ("top_logprobs", fields(logprobs=True, top_logprobs=-1)),
        ("top_logprobs", fields(top_logprobs=1)),
        ("tenant", fields(tenant="t" * 65)),
        ("tenant", fields(tenant="a\nb")),
        ("request_id", fields(request_id="r" * 129)),
        ("sampling.temperature", sampling(temperature=-0.1)),
        ("sampling.temperature", sampling(temperature=2.1)),
        ("sampling.temperature", sampling(temperature=float("nan"))),
        ("sampling.top_p", sampling(top_p=0.0)),
        ("sampling.top_p", sampling(top_p=1.01)),
        ("sampling.top_p", sampling(top_p=float("nan"))),
        ("sampling.top_k", sampling(top_k=-1)),
        ("sampling.stop", sampling(stop=["x"] * 9)),
        ("sampling.stop[1]", sampling(stop=["x", ""])),
        ("sampling.stop[0]", sampling(stop=["x" * 129])),
        ("output.labels.values", labels("one")),
        ("output.labels.values[1]", labels("one", "")),
        ("output.labels.values[2]", labels("one", "two", "one")),
        ("output.json_schema", output(json_schema=" " * 70_000)),
        ("output.regex", output(regex="")),
        ("output.regex", output(regex="a" * 1_025)),
    ],
)
def test_refused(field: str, change: Change) -> None:
    with pytest.raises(InvalidField) as caught:
        read(change)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.tools.add(name="t"),
        message(role=2, tool_calls=[chat_pb2.ToolCall(id="1", name="t")]),
    ],
)
def test_not_there_yet(change: Change) -> None:
    with pytest.raises(Unimplemented):
        read(change)


def test_absent_fields_take_the_defaults() -> None:
    found = read(lambda _: None)
    assert found.lane is None
    assert (found.sampling.temperature, found.sampling.top_p, found.sampling.top_k) == (0, 1, 0)
    assert found.seed is None
    assert found.max_output_tokens == 0


def test_few_shot_comes_before_the_conversation() -> None:
    found = read(lambda r: r.few_shot.add(role=chat_pb2.ROLE_ASSISTANT, content="shot"))
    assert [(turn.role, turn.text) for turn in found.turns] == [
        ("assistant", "shot"),
        ("user", "hi"),
    ]


def test_what_is_asked_is_kept() -> None:
    def change(request: edge_pb2.GenerateRequest) -> None:
        request.lane = edge_pb2.LANE_COMPLEX
        request.sampling.seed = 0
        request.sampling.temperature = 2.0
        request.output.labels.values.extend(["a", "b"])

    found = read(change)
    assert found.lane is LaneName.COMPLEX
    assert found.seed == 0
    assert found.sampling.temperature == 2.0
    assert found.form == LabelForm(("a", "b"))
    assert read(output(regex="a+")).form == RegexForm("a+")
    assert read(output(json_schema="{}")).form == SchemaForm("{}")
