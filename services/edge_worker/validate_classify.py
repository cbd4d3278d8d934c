"""ClassifyRequest to `Classification`: every rule that a field can break."""

from __future__ import annotations

from services.common.errors import InvalidField
from services.edge_worker.classify import Classification
from services.edge_worker.config import LimitSettings
from services.edge_worker.output_contract import check_labels
from services.edge_worker.validate import read_turns
from tandem.edge.v1 import edge_pb2


def read_classify(request: edge_pb2.ClassifyRequest, limits: LimitSettings) -> Classification:
    """Checks a request.

    Raises:
        InvalidField: Names the field and what is allowed.
        Unimplemented: A worked example that calls tools.
    """
    if not request.text.strip():
        raise InvalidField("text", "must not be empty")
    if len(request.few_shot) >= limits.max_messages:
        raise InvalidField("few_shot", f"must hold fewer than {limits.max_messages} turns")
    shots = sum(len(turn.content) for turn in request.few_shot)
    if len(request.text) + len(request.instruction) + shots > limits.max_text_chars:
        raise InvalidField(
            "text",
            f"must have at most {limits.max_text_chars} characters with instruction and few_shot",
        )
    return Classification(
        text=request.text,
        labels=check_labels("labels.values", request.labels.values, limits),
        instruction=request.instruction.strip(),
        few_shot=read_turns("few_shot", request.few_shot),
    )
