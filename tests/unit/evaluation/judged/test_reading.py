"""Judged rows are read whole or refused with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evaluation.judged.counts import count
from evaluation.judged.data import read_judged
from evaluation.rows import BadData
from tests.unit.evaluation.judged_rows import judged, write_lines


def test_both_formats_give_the_same_counts(tmp_path: Path) -> None:
    rows = judged(400)
    lines = read_judged(write_lines(tmp_path / "a.jsonl", rows))
    pl.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    packed = read_judged(tmp_path / "a.parquet")
    assert lines.ids == packed.ids
    one, two = (count(each.frame, (0.5, 0.5), 3)["order"] for each in (lines, packed))
    assert one.total == two.total == 400
    for name in ("scores", "parts", "rows", "right", "cloud_right"):
        assert (getattr(one, name) == getattr(two, name)).all(), name


def test_a_session_is_in_one_part(tmp_path: Path) -> None:
    rows = judged(300)
    for row in rows:
        # Of each session one intent tells the session.
        row["intent"] = row["session"]
    table = count(read_judged(write_lines(tmp_path / "a.jsonl", rows)).frame, (0.3, 0.4, 0.3), 1)
    parts: dict[str, set[int]] = {}
    for session, part in zip(table["order"].intents, table["order"].parts, strict=True):
        parts.setdefault(str(session), set()).add(int(part))
    assert all(len(found) == 1 for found in parts.values())
    assert {part for found in parts.values() for part in found} == {0, 1, 2}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"right": None}, "`right` must be true, false, 1 or 0"),
        ({"score": 1.5}, "`score` must be from 0 to 1"),
        ({"score": float("nan")}, "`score` must be from 0 to 1"),
        ({"score": True}, "`score` must be"),
        ({"id": "order0"}, "the `id` of this row was there before"),
        ({"model_id": "m2"}, "task 'order' has model_id 'm2'"),
        ({"prompt_id": "p2"}, "task 'order' has prompt_id 'p2'"),
        ({"signals": {"logprob": 2.0}}, "`signals` must map"),
        ({"signals": {"magic": 0.2}}, "`signals` must map"),
    ],
)
def test_bad_lines(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    rows = judged(5)
    rows[3] |= change
    file = write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(BadData) as caught:
        read_judged(file)
    assert f"{file}, line 4" in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("column", ["task", "score", "right", "model_id", "prompt_id"])
def test_missing_columns(tmp_path: Path, column: str) -> None:
    rows = judged(5)
    for row in rows:
        del row[column]
    with pytest.raises(BadData, match=f"line 1: the column `{column}` is missing"):
        read_judged(write_lines(tmp_path / "a.jsonl", rows))
    pl.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(BadData, match=f"the column `{column}` is missing"):
        read_judged(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"score": 1.5}, "row 4: `score` must be from 0 to 1"),
        ({"right": None}, "row 4: `right` is null"),
        ({"id": "order0"}, "row 4: the `id` of this row was there before"),
        ({"model_id": "m2"}, "row 4: task 'order' has model_id 'm2'"),
    ],
)
def test_bad_parquet_rows(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    rows = judged(5)
    rows[3] |= change
    pl.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(BadData, match=said):
        read_judged(tmp_path / "a.parquet")


def test_cut_files(tmp_path: Path) -> None:
    rows = judged(200)
    lines = write_lines(tmp_path / "a.jsonl", rows)
    lines.write_bytes(lines.read_bytes()[:-20])
    with pytest.raises(BadData, match=r"line 200: not JSON \(is the file cut\?\)"):
        read_judged(lines)
    packed = tmp_path / "a.parquet"
    pl.DataFrame(rows).write_parquet(packed)
    packed.write_bytes(packed.read_bytes()[:-100])
    with pytest.raises(BadData, match="not a whole Parquet file"):
        read_judged(packed)


def test_one_model_is_taken_out(tmp_path: Path) -> None:
    rows = judged(10)
    rows[3]["model_id"] = "m2"
    file = write_lines(tmp_path / "a.jsonl", rows)
    assert read_judged(file, model_id="m1").frame.collect().height == 9
    with pytest.raises(BadData, match="no rows of model id 'm3'"):
        read_judged(file, model_id="m3")


def test_signals_are_weighed_and_named(tmp_path: Path) -> None:
    rows = judged(3)
    for row in rows:
        row["signals"] = {"logprob": 0.8, "agreement": 0.4}
    found = read_judged(write_lines(tmp_path / "a.jsonl", rows))
    assert found.ids["order"].signals == "agreement+logprob"
    assert found.frame.collect()["score"][0] == pytest.approx((0.5 * 0.8 + 0.3 * 0.4) / 0.8)


def test_equal_rows_without_id_are_said(tmp_path: Path) -> None:
    rows = judged(5)
    for row in rows:
        del row["id"]
    found = read_judged(write_lines(tmp_path / "a.jsonl", [*rows, rows[2]]))
    assert found.warnings == (
        "1 rows are equal to others in every column; without `id` they are kept",
    )
