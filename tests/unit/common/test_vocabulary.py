"""The vocabulary and the protos are one list."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from services.common import vocabulary
from tandem.common.v1 import chat_pb2, decision_pb2


@pytest.mark.parametrize(
    ("ours", "proto", "prefix"),
    [
        (vocabulary.Target, decision_pb2.Target, "TARGET_"),
        (vocabulary.Level, decision_pb2.Level, "LEVEL_"),
        (vocabulary.FallbackType, decision_pb2.FallbackType, "FALLBACK_TYPE_"),
        (vocabulary.Reason, decision_pb2.Reason, "REASON_"),
        (vocabulary.AttemptOutcome, decision_pb2.AttemptOutcome, "ATTEMPT_OUTCOME_"),
        (vocabulary.FinishReason, chat_pb2.FinishReason, "FINISH_REASON_"),
    ],
)
def test_names_agree(ours: type[StrEnum], proto: Any, prefix: str) -> None:
    known = [name for name, number in proto.items() if number != 0]
    assert [prefix + member.value for member in ours] == known
