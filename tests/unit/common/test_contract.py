"""Output contracts from callers: bounded, and nothing is fetched."""

from __future__ import annotations

import json
import time

import pytest

from services.common.contract import check_labels, check_pattern, check_schema
from services.common.errors import InvalidField

DEEP = json.dumps({"type": "object"})
for _ in range(40):
    DEEP = '{"not":' + DEEP + "}"


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "no json",
        "[]",
        '{"type":"nope"}',
        '{"$ref":"http://example.com/s"}',
        '{"$ref":"file:///etc/passwd"}',
        '{"$id":"http://example.com/","$ref":"other"}',
        '{"properties":{"a":{"$dynamicRef":"http://example.com/s"}}}',
        '{"pattern":"(?=look)"}',
        '{"pattern":"((a{1000}){1000}){1000}"}',
        DEEP,
        "[" * 100_000,
        json.dumps({"description": "x" * 70_000}),
    ],
)
def test_bad_schemas_name_the_field(schema: str) -> None:
    with pytest.raises(InvalidField) as caught:
        check_schema("output.json_schema", schema)
    assert caught.value.field == "output.json_schema"


def test_a_good_schema_checks_answers() -> None:
    check = check_schema("f", '{"type":"object","required":["a"],"$defs":{"x":{"type":"integer"}}}')
    assert check('{"a": 1}')
    assert not check("{}")
    assert not check("a: 1")
    assert not check("[" * 100_000)


@pytest.mark.parametrize("pattern", ["", "(", "a)|(b", "(?=a)", r"(a)\1", "x" * 2_000])
def test_bad_patterns_name_the_field(pattern: str) -> None:
    with pytest.raises(InvalidField) as caught:
        check_pattern("output.regex", pattern)
    assert caught.value.field == "output.regex"


def test_a_pattern_matches_the_whole_answer_in_linear_time() -> None:
    check = check_pattern("f", "a|b+")
    assert check("a") and check("bbb")
    assert not check("ab") and not check("xa")
    started = time.process_time()
    assert not check_pattern("f", "(a+)+b")("a" * 50_000)
    # A backtracking engine would need longer than the universe has lasted.
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("labels", "field"),
    [
        ([], "f"),
        (["one"], "f"),
        (["same", "same"], "f"),
        (["a", " "], "f[1]"),
        (["a", "x" * 200], "f[1]"),
    ],
)
def test_bad_labels_name_the_field(labels: list[str], field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        check_labels("f", labels)
    assert caught.value.field == field


def test_labels_check_answers() -> None:
    check = check_labels("f", ["yes", "no"])
    assert check(" yes\n") and not check("yes no")
