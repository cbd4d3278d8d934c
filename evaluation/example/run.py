"""Edge only, cloud only, hybrid on the same rows; judged rows and ledger rows from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration import Floats
from evaluation.example.intents import Example, Intents, answer, shortlist

TASK = "intent_classification"
# Of the edge model's probabilities; the rest is the embedder's.
_WEIGHT = 0.3
_CLOUD_ERRS = 0.04
_CLOUD_MS, _CLOUD_IN, _CLOUD_OUT = 900.0, 420, 6
CLOUD_INPUT_USD, CLOUD_OUTPUT_USD = 0.5, 2.0
"""A million tokens."""
_CLOUD_MICRO_USD = round(_CLOUD_IN * CLOUD_INPUT_USD + _CLOUD_OUT * CLOUD_OUTPUT_USD)
STANDIN = (
    "The cloud is a stand-in: it knows the right intent and errs on 4 % of the rows, chosen by "
    "hash, takes 900 ms and costs 222 micro USD a call."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One row as the edge and the stand-in answered it."""

    example: Example
    intent: str
    score: float
    edge_ms: float
    cloud_right: bool

    @property
    def right(self) -> bool:
        """The edge's answer is the gold one."""
        return self.intent == self.example.intent


Classify = Callable[[str, Sequence[str]], tuple[Floats, float]]
"""The edge model: probabilities of the labels, in their order, and the milliseconds it took."""
Embed = Callable[[Sequence[str]], NDArray[np.float32]]


def ask_all(
    intents: Intents, embed: Embed, classify: Classify, tick: Callable[[], None]
) -> list[Asked]:
    """Asks every row; `tick` is called after each."""
    vectors = embed([one.text for one in intents.known])
    found = []
    for one in intents.asked:
        near = shortlist(embed([one.text])[0], vectors, intents)
        chances, took_ms = classify(one.text, near.intents)
        intent, score = answer(near, chances, _WEIGHT)
        found.append(Asked(one, intent, score, took_ms, _cloud_right(one)))
        tick()
    return found


def _cloud_right(one: Example) -> bool:
    place = int.from_bytes(hashlib.sha256(one.text.encode()).digest()[:4], "big") / 2**32
    return place >= _CLOUD_ERRS


def judged_rows(asked: Sequence[Asked], model_id: str, prompt_id: str) -> str:
    """JSON lines for `tandem calibrate` and `tandem sweep`."""
    rows = [
        {
            "id": str(number), "task": TASK, "intent": one.example.intent,
            "score": round(one.score, 6), "right": one.right, "cloud_right": one.cloud_right,
            "session": f"s{number}", "model_id": model_id, "prompt_id": prompt_id,
        }
        for number, one in enumerate(asked)
    ]  # fmt: skip
    return "".join(json.dumps(row) + "\n" for row in rows)


def ledger_rows(
    asked: Sequence[Asked],
    accept: Callable[[float], bool],
    model_id: str,
    prompt_id: str,
    at: float,
) -> list[dict[str, Any]]:
    """What the router's ledger would hold, with a verdict on each answer.

    Args:
        asked: The rows.
        accept: Whether the edge's answer of that score is served.
        model_id, prompt_id: Of the edge.
        at: Of the first, seconds since the epoch; one a minute.
    """
    return [
        _ledger_row(number, one, accept(one.score), model_id, prompt_id, at + 60.0 * number)
        for number, one in enumerate(asked)
    ]


def _ledger_row(
    number: int, one: Asked, kept: bool, model_id: str, prompt_id: str, at: float
) -> dict[str, Any]:
    edge = {
        "index": 0, "level": "L0", "target": "EDGE", "reason": "GREY_CASCADE", "ms": one.edge_ms,
        "outcome": "ACCEPTED" if kept else "REJECTED", "model_id": model_id,
        "input_tokens": _CLOUD_IN, "output_tokens": _CLOUD_OUT, "cost_micro_usd": 0,
    }  # fmt: skip
    cloud = {
        "index": 1, "level": "L2", "target": "CLOUD_SMALL", "reason": "DEFAULT", "ms": _CLOUD_MS,
        "outcome": "ACCEPTED", "model_id": "stand-in", "input_tokens": _CLOUD_IN,
        "output_tokens": _CLOUD_OUT, "cost_micro_usd": _CLOUD_MICRO_USD,
    }  # fmt: skip
    attempts = [edge] if kept else [edge, cloud]
    both = {"edge_ok": one.right, "cloud_ok": one.cloud_right}
    return {
        "row_id": f"example{number}", "request_id": f"example{number}", "at": at,
        "tenant": "example", "session_hash": f"s{number}", "task_type": TASK,
        "intent": one.example.intent, "ended": "ANSWERED", "level": "L0" if kept else "L2",
        "target": "EDGE" if kept else "CLOUD_SMALL", "attempts": attempts, "complexity": 6.0,
        "confidence_raw": one.score, "model_id": model_id if kept else "stand-in",
        "prompt_id": prompt_id, "cost_micro_usd": 0 if kept else _CLOUD_MICRO_USD,
        "total_ms": one.edge_ms + (0.0 if kept else _CLOUD_MS),
        "verdict": "GOOD" if (one.right if kept else one.cloud_right) else "BAD", "shadow": both,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Way:
    """One way to answer all rows.

    Attributes:
        usd: Of 1,000 requests.
    """

    name: str
    accuracy: float
    escalation: float
    usd: float
    mean_ms: float


def ways(asked: Sequence[Asked], accept: Callable[[float], bool]) -> tuple[Way, ...]:
    """Edge only, cloud only, and both with the threshold."""
    rules: dict[str, Callable[[float], bool]] = {
        "edge only": lambda _: True,
        "hybrid": accept,
    }
    found = [_way(name, asked, rule) for name, rule in rules.items()]
    right = float(np.mean([one.cloud_right for one in asked]))
    return found[0], Way("cloud only", right, 1.0, _CLOUD_MICRO_USD / 1e3, _CLOUD_MS), found[1]


def _way(name: str, asked: Sequence[Asked], rule: Callable[[float], bool]) -> Way:
    kept = np.array([rule(one.score) for one in asked])
    right = np.where(kept, [one.right for one in asked], [one.cloud_right for one in asked])
    ms = np.array([one.edge_ms for one in asked]) + np.where(kept, 0.0, _CLOUD_MS)
    sent = float((~kept).mean())
    return Way(name, float(right.mean()), sent, sent * _CLOUD_MICRO_USD / 1e3, float(ms.mean()))
