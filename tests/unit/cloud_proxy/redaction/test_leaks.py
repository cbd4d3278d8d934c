"""Generated texts in every wrapping: what the detector finds never leaves, and all comes back."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from evaluation.pii_cases import generate
from services.cloud_proxy.redaction.redactor import redact
from services.cloud_proxy.redaction.restorer import restore, restore_json
from services.cloud_proxy.redaction.screen import Screen
from services.cloud_proxy.request import Role, ToolCall, Turn, texts
from services.common.pii.detector import StructuredDetector
from tests.unit.cloud_proxy.requests import request

DETECTOR = StructuredDetector()
CASES = generate(1_000, 11)
WRAPPINGS: dict[str, Callable[[list[str]], str]] = {
    "lines": "\n".join,
    "object": lambda parts: json.dumps({f"k{i}": part for i, part in enumerate(parts)}),
    "prose and JSON": lambda parts: "Result: " + json.dumps([{"note": part} for part in parts]),
    "JSON in JSON": lambda parts: json.dumps({"body": json.dumps(parts, ensure_ascii=False)}),
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_no_value_leaves_and_every_text_comes_back(wrapping: str) -> None:
    draw = random.Random(wrapping)
    for _ in range(120):
        chosen = draw.sample(CASES, draw.randint(1, 6))
        parts = [case.text for case in chosen]
        text = WRAPPINGS[wrapping](parts)
        call = ToolCall("c", "send", json.dumps({"parts": parts}))
        turns = (Turn(Role.USER, text, (), ""), Turn(Role.ASSISTANT, "", (call,), ""))
        result = redact(request(system=parts[0], messages=turns), Screen(DETECTOR))
        sent = list(texts(result.request))
        for part in parts:
            for span in DETECTOR.find(part):
                value = part[span.start : span.end]
                for form in (value, json.dumps(value)[1:-1]):
                    assert not any(form in text for text in sent)
        if text.startswith("{"):
            # The same JSON; which letters are escaped may differ.
            assert json.loads(restore_json(sent[1], result.values)) == json.loads(text)
        else:
            assert restore(sent[1], result.values) == text
        arguments = result.request.messages[1].tool_calls[0].arguments
        assert json.loads(restore_json(arguments, result.values)) == {"parts": parts}
