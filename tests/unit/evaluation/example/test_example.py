"""The worked example without a model: what is asked, judged and written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cli.parquet import write_parquet
from evaluation.example.intents import read_intents
from evaluation.example.run import Asked, ask_all, judged_rows, ledger_rows, ways
from evaluation.judged.data import read_judged
from evaluation.replay.ledger import scan_ledger
from evaluation.rows import BadData
from tests.unit.evaluation.judged_rows import write_lines

INTENTS = ("card_lost", "top_up", "refund", "rate")


def rows(asked: int) -> list[dict[str, Any]]:
    """Texts whose first word is their intent."""
    known = [{"split": "train", "text": f"{name} k{i}", "intent": name}
             for name in INTENTS for i in range(20)]  # fmt: skip
    return known + [
        {"split": "test", "text": f"{INTENTS[i % 4]} q{i}", "intent": INTENTS[i % 4]}
        for i in range(asked)
    ]


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """One dimension for each intent, with a little of the next."""
    found = np.zeros((len(texts), 4), dtype=np.float32)
    for line, text in zip(found, texts, strict=True):
        place = INTENTS.index(text.split()[0])
        line[place], line[(place + 1) % 4] = 0.8, 0.6
    return found


def asked_of(path: Path, count: int = 40) -> list[Asked]:
    intents = read_intents(write_lines(path / "a.jsonl", rows(50)), count, 0)
    assert len(intents.known) == 4 * 12

    def classify(text: str, labels: Sequence[str]) -> tuple[NDArray[np.float64], float]:
        # The model is sure, and wrong where the text ends in 7.
        place = labels.index(text.split()[0])
        wrong = (place + 1) % 3 if text.endswith("7") else place
        return np.eye(3)[wrong], 12.5

    return ask_all(intents, embed, classify, lambda: None)


def test_the_nearest_intents_are_offered_and_mixed(tmp_path: Path) -> None:
    asked = asked_of(tmp_path)
    assert all(one.right for one in asked)
    sure = [one.score for one in asked if not one.example.text.endswith("7")]
    unsure = [one.score for one in asked if one.example.text.endswith("7")]
    assert unsure and min(sure) > max(unsure)


def test_what_is_written_is_what_the_commands_read(tmp_path: Path) -> None:
    asked = asked_of(tmp_path)
    (tmp_path / "judged.jsonl").write_text(judged_rows(asked, "edge-1", "p1"))
    judged = read_judged(tmp_path / "judged.jsonl")
    assert judged.frame.collect().height == 40
    accept = [one.score for one in asked]
    bound = float(np.median(accept))
    made = ledger_rows(asked, lambda score: score >= bound, "edge-1", "p1", 0.0)
    write_parquet(tmp_path / "ledger.parquet", iter([made]))
    facts = scan_ledger(tmp_path / "ledger.parquet").collect()
    assert facts["edge_right"].to_list().count(True) == 40
    hybrid = ways(asked, lambda score: score >= bound)[2]
    assert hybrid.escalation == (facts["target"] == "CLOUD_SMALL").mean()


def test_three_ways(tmp_path: Path) -> None:
    asked = asked_of(tmp_path)
    edge, cloud, hybrid = ways(asked, lambda score: score > 2)
    assert (edge.escalation, edge.usd, edge.accuracy) == (0.0, 0.0, 1.0)
    assert (cloud.escalation, cloud.accuracy) == (1.0, hybrid.accuracy)
    assert hybrid.mean_ms == pytest.approx(cloud.mean_ms + 12.5)


def test_too_little_is_said(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", rows(5))
    with pytest.raises(BadData, match="5 rows outside the split `train`; 40 are asked for"):
        read_intents(file, 40, 0)
    write_lines(file, [{"split": "train", "text": "a"}])
    with pytest.raises(BadData, match="line 1: the column `intent` is missing"):
        read_intents(file, 40, 0)
    write_lines(file, [json.loads('{"split": "test", "text": "a", "intent": "b"}')])
    with pytest.raises(BadData, match="0 intents in the split `train`; 3 are needed"):
        read_intents(file, 1, 0)
