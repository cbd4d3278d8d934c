"""JSON text changed inside its strings and nowhere else."""

from __future__ import annotations

import json

import pytest

from services.cloud_proxy.redaction.jsontext import map_strings, map_text


def upper(_: str, text: str) -> str:
    return text.upper()


@pytest.mark.parametrize(
    "text", ["", "x", "12", '"x"', "[1, 2]", "{", '{"a": }', "[PHONE_1]", "[" * 5_000]
)
def test_what_is_no_object_and_no_list_is_taken_whole(text: str) -> None:
    assert map_strings(text, upper) is None
    assert map_text(text, upper) == text.upper()


def test_only_what_changes_is_written_anew() -> None:
    text = '{ "A" :\t"caf\\u00e9" ,"A": [1.50, 1E5, -0, null, true], "B": "\\u0041\\/"}'
    assert map_text(text, lambda _, plain: plain) == text
    assert map_text(text, lambda _, plain: plain.replace("é", "e")) == text.replace("\\u00e9", "e")
    assert map_text(text, lambda _, plain: plain.replace("f", "F")) == text.replace("f", "F")


def test_labels_are_the_nearest_keys() -> None:
    seen: list[tuple[str, str]] = []

    def note(label: str, text: str) -> str:
        seen.append((label, text))
        return text

    map_text('{"a": "x", "b": ["y", 7, {"c": "z"}]}', note)
    assert [pair for pair in seen if pair[0]] == [("a", "x"), ("b", "y"), ("b", "7"), ("c", "z")]
    assert [text for label, text in seen if not label] == ["a", "b", "c"]


def test_a_number_that_changes_becomes_a_string() -> None:
    assert map_text('{"a": 13}', lambda _, text: "[X]" if text == "13" else text) == '{"a": "[X]"}'


def test_json_in_strings_is_entered_to_a_bound() -> None:
    text = json.dumps({"x": "deep"})
    for _ in range(3):
        text = json.dumps({"x": text})
    changed = map_text(text, lambda _, plain: plain.replace("deep", 'a"b'))
    for _ in range(3):
        changed = json.loads(changed)["x"]
    assert json.loads(changed) == {"x": 'a"b'}


def test_half_a_surrogate_pair_stays_an_escape() -> None:
    changed = map_text('{"a": "\\ud800x"}', lambda _, text: text.replace("x", "y"))
    assert changed == '{"a": "\\ud800y"}'
    changed.encode()
