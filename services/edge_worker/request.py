"""A request for text, checked and free of protobuf."""

from __future__ import annotations

from dataclasses import dataclass

from services.edge_worker.chat_template import Turn
from services.edge_worker.form import Form
from services.edge_worker.sampling import SamplingParams
from services.edge_worker.scheduler.plan import LaneName


@dataclass(frozen=True, slots=True)
class Generation:
    """What `Generate` was asked for.

    Attributes:
        lane: None: the worker chooses.
        max_output_tokens: 0: the worker's cap.
        seed: None: drawn anew.
        form: What the answer must look like; None: any text.
        samples: Answers drawn after one prefill.
    """

    request_id: str
    tenant: str
    lane: LaneName | None
    system: str
    turns: tuple[Turn, ...]
    sampling: SamplingParams
    seed: int | None
    stops: tuple[str, ...]
    max_output_tokens: int
    min_output_tokens: int
    logprobs: bool
    top_logprobs: int
    form: Form | None = None
    samples: int = 1

    @property
    def chars(self) -> int:
        """Length of all its texts."""
        return len(self.system) + sum(len(turn.text) for turn in self.turns)
