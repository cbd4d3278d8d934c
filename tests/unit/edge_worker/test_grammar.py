"""Schemas and expressions: what is held to, and what is refused."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.contract import check_pattern, check_schema
from services.common.errors import InvalidField
from services.edge_worker.constraint import Constraint
from services.edge_worker.form import RegexForm, SchemaForm
from services.edge_worker.grammar_bounds import MAX_EXPANDED, expanded_size
from services.edge_worker.held import ModelForms
from tests.fakes.burn_runtime import EOS, byte_forms
from tests.fakes.schemas import random_schema

FORMS: ModelForms = byte_forms()
MOST = 2_000


def babble(constraint: Constraint | None, seed: int) -> str | None:
    """An answer of random bytes that the constraint lets through; None where it never ends."""
    assert constraint is not None
    rng, text = np.random.default_rng(seed), bytearray()
    for _ in range(MOST):
        allowed = constraint.allowed()
        token = EOS if EOS in allowed else int(rng.choice(allowed))
        constraint.take(token)
        if token == EOS:
            return text.decode()
        text.append(token)
        if constraint.done:
            return text.decode()
    return None


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000))
def test_whatever_a_schema_lets_through_fits_it(seed: int) -> None:
    text = json.dumps(random_schema(random.Random(seed)))
    answer = babble(FORMS(SchemaForm(text)).start(), seed)
    assert answer is not None
    assert check_schema("f", text)(answer), answer


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d{4}-\d{2}-\d{2}",
        r"^(yes|no), because .{1,20}$",
        r"[A-Z]{2}/\w+",
        r"\"quoted\"|/slash/|#",
        r"(?i)abc[^a]\s",
        r"价格：[0-9]+元",
        r"a?",
    ],
)
def test_whatever_an_expression_lets_through_matches_it(pattern: str) -> None:
    held = FORMS(RegexForm(pattern))
    for seed in range(20):
        answer = babble(held.start(), seed)
        assert answer is not None
        assert check_pattern("f", pattern)(answer), answer


def test_answers_of_one_form_do_not_disturb_each_other() -> None:
    held = FORMS(RegexForm("ab|cd"))
    one, other = held.start(), held.start()
    assert one is not None
    assert other is not None
    one.take(ord("a"))
    assert other.allowed().tolist() == [ord("a"), ord("c")]
    assert one.allowed().tolist() == [ord("b")]


def test_labels_say_how_long_they_are() -> None:
    assert FORMS(RegexForm("a")).longest_tokens is None


REFUSED_PATTERNS = {
    "broken": "(",
    "look-around": "(?=a)b",
    "back-reference": r"(a)\1",
    "nested counts": "(((((a{30}){30}){30}){30}){30})",
    "behind a prefix": "hello (((((a{30}){30}){30}){30}){30})",
    "count": "a{100000}",
    "open count": "(a{9000,})",
    "nothing fits": "a^b",
}


@pytest.mark.parametrize("pattern", REFUSED_PATTERNS.values(), ids=REFUSED_PATTERNS.keys())
def test_expressions_that_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidField) as caught:
        FORMS(RegexForm(pattern))
    assert caught.value.field == "output.regex"


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


REFUSED_SCHEMAS: dict[str, Any] = {
    "no object": [],
    "remote": {"$ref": "http://example.com/schema.json"},
    "file": {"$ref": "file:///etc/passwd"},
    "remote inside": {"properties": {"a": {"$ref": "other.json#/a"}}},
    "dangling": {"$ref": "#/$defs/none"},
    "circular": {"$ref": "#"},
    "deep": nested(40),
    "huge": {"enum": [f"value number {i}" for i in range(2_000)]},
    "wide": {"properties": {f"p{i}": {"type": "integer"} for i in range(500)}},
    "multiples": {"type": "integer", "multipleOf": 999_983},
    "small multiples": {"type": "number", "multipleOf": 0.999983},
    "common multiple": {"allOf": [{"multipleOf": 4_999}, {"multipleOf": 4_993}]},
    "nested counts": {"type": "string", "pattern": "(((a{30}){30}){30})"},
    "many patterns": {"properties": {f"p{i}": {"pattern": "a{500}"} for i in range(9)}},
    "key patterns": {"patternProperties": {f"^p{i}_": {"type": "null"} for i in range(200)}},
    "exponential": {
        "allOf": [
            {"anyOf": [{"properties": {f"p{i}_{j}": {"type": "string"}}} for j in range(4)]}
            for i in range(12)
        ]
    },
    "large number": {"type": "integer", "maximum": 10**400},
    "nothing fits": {"type": "object", "properties": {"a": False}, "required": ["a"]},
}


@pytest.mark.parametrize("schema", REFUSED_SCHEMAS.values(), ids=REFUSED_SCHEMAS.keys())
def test_schemas_that_are_refused(schema: Any) -> None:
    with pytest.raises(InvalidField) as caught:
        FORMS(SchemaForm(json.dumps(schema)))
    assert caught.value.field == "output.json_schema"


@pytest.mark.parametrize("text", ["{", "[" * 10_000, '{"type": "nonsense"}'])
def test_text_that_is_no_schema(text: str) -> None:
    with pytest.raises(InvalidField):
        FORMS(SchemaForm(text))


def test_a_reason_holds_nothing_of_the_schema() -> None:
    secret = "jo@example.com"
    with pytest.raises(InvalidField) as caught:
        FORMS(SchemaForm(json.dumps({"const": secret, "allOf": [{"const": 1}]})))
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("abc", 3),
        ("a{3}", 3),
        ("a{2,5}b", 6),
        ("(ab){3}", 6),
        ("((ab){3}c){2}", 14),
        ("[^]a]{4}", 4),
        (r"[a\]]{4}\{{2}", 6),
        ("(?:a|b){2}", 6),
        ("(?P<x>a){2}", 2),
        ("a{,5}", 5),
        ("a{9}{9}", 81),
        ("a{0}", 1),
        (")(", 1),
    ],
)
def test_expanded_size(pattern: str, size: int) -> None:
    assert expanded_size(pattern) == size


@given(st.text("ab(){}[]\\^?:,0123456789", max_size=60))
def test_expanded_size_takes_anything(pattern: str) -> None:
    assert expanded_size(pattern) >= 0
    assert expanded_size(f"({pattern}){{5000}}") >= 0


def test_the_bound_is_about_what_is_written_out() -> None:
    FORMS(RegexForm("(ab){1000}"))
    with pytest.raises(InvalidField, match=str(MAX_EXPANDED)):
        FORMS(RegexForm("(ab){2001}"))


def test_one_answer_cannot_use_up_the_bounds_of_the_next_request() -> None:
    """Copies share an automaton; a new compilation must not."""
    form, rng = RegexForm(".*[a-m].{200}"), np.random.default_rng(0)
    one = FORMS(form).start()
    assert one is not None
    with pytest.raises(InvalidField):
        for _ in range(20 * MOST):
            one.allowed()
            one.take(ord("a") + int(rng.integers(26)))
    other = FORMS(form).start()
    assert other is not None
    assert len(other.allowed()) > 1
