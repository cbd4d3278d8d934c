"""Every rule of a ClassifyRequest, by name of the field."""

from __future__ import annotations

import pytest

from services.common.errors import InvalidField
from services.edge_worker.config import LimitSettings
from services.edge_worker.validate_classify import read_classify
from tandem.common.v1 import chat_pb2
from tandem.edge.v1 import edge_pb2

LIMITS = LimitSettings(max_text_chars=100, max_messages=2, max_labels=3)


def request(text: str = "hi", labels: tuple[str, ...] = ("a", "b"), **more: object) -> object:
    values = chat_pb2.Labels(values=labels)
    return edge_pb2.ClassifyRequest(text=text, labels=values, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("text", request(" ")),
        ("text", request("x" * 101)),
        ("text", request("x" * 60, instruction="y" * 60)),
        ("labels.values", request(labels=("a",))),
        ("labels.values", request(labels=("a", "b", "c", "d"))),
        ("labels.values[1]", request(labels=("a", "a"))),
        (
            "few_shot",
            request(few_shot=[chat_pb2.Message(role=chat_pb2.ROLE_USER, content="x")] * 2),
        ),
        ("few_shot[0].role", request(few_shot=[chat_pb2.Message(content="x")])),
    ],
)
def test_refused(field: str, bad: edge_pb2.ClassifyRequest) -> None:
    with pytest.raises(InvalidField) as caught:
        read_classify(bad, LIMITS)
    assert caught.value.field == field


def test_the_prompt_names_every_label_and_the_callers_words() -> None:
    good = request(instruction=" Which animal? ")
    assert isinstance(good, edge_pb2.ClassifyRequest)
    found = read_classify(good, LIMITS)
    assert found.system.startswith("Which animal?\n")
    assert "a, b" in found.system
    assert found.chars > len(found.system)
