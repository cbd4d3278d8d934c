"""EmbedRequest to texts: every rule that a field can break."""

from __future__ import annotations

from services.common.errors import InvalidField
from services.edge_worker.config import EmbedSettings
from tandem.edge.v1 import edge_pb2


def read_embed(request: edge_pb2.EmbedRequest, settings: EmbedSettings) -> tuple[str, ...]:
    """Checks a request; InvalidField names the field and what is allowed."""
    if not 1 <= len(request.texts) <= settings.max_texts:
        raise InvalidField("texts", f"must hold 1 to {settings.max_texts} texts")
    for index, text in enumerate(request.texts):
        if not text.strip() or len(text) > settings.max_chars:
            raise InvalidField(f"texts[{index}]", f"must have 1 to {settings.max_chars} characters")
    return tuple(request.texts)
