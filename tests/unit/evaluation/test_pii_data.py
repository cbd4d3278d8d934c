"""Files that can be read, and what is said of those that cannot."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.pii_data import KIND_OF, Case, Label, read_cases
from evaluation.rows import BadData
from services.common.pii.kinds import PiiKind

TEXT = "mail jo@example.com"
SPAN = {"type": "EMAIL_ADDRESS", "start": 5, "end": 19, "value": "jo@example.com"}


def row(**changes: Any) -> str:
    return json.dumps({"text": TEXT, "spans": [SPAN], **changes})


@pytest.mark.parametrize("packed", [True, False])
def test_plain_and_gzipped_lines(tmp_path: Path, packed: bool) -> None:
    lines = (row() + "\n\n" + row(spans=[], more="ignored") + "\n").encode()
    file = tmp_path / "data"
    file.write_bytes(gzip.compress(lines) if packed else lines)
    assert read_cases(file) == [Case(TEXT, (Label("EMAIL_ADDRESS", 5, 19),)), Case(TEXT, ())]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"text": "cut', "line 2: not JSON"),
        ("[1]", "line 2: not a JSON object"),
        ('{"spans": []}', "line 2: the column `text` is missing"),
        ('{"text": "x"}', "line 2: the column `spans` is missing"),
        ('{"text": 1, "spans": []}', "line 2: `text` must be a str"),
        ('{"text": "x", "spans": {}}', "line 2: `spans` must be a list"),
        ('{"text": "x", "spans": [1]}', r"line 2: spans\[0\] is not a JSON object"),
        (row(spans=[SPAN, {**SPAN, "type": None}]), r"spans\[1\]: `type` must be a str"),
        (row(spans=[{"type": "X", "start": 1}]), "the column `end` is missing"),
        (row(spans=[{**SPAN, "start": True}]), "`start` must be a int"),
        (row(spans=[{**SPAN, "end": 99}]), "start and end do not lie in the text"),
        (row(spans=[{**SPAN, "start": 19}]), "start and end do not lie in the text"),
        (row(spans=[{**SPAN, "value": "other"}]), "`value` is not what stands there"),
        ("[" * 100_000, "line 2: not JSON"),
        ("\udcff", "line 2: not JSON"),
    ],
)
def test_bad_rows_name_file_and_line(tmp_path: Path, second: str, message: str) -> None:
    file = tmp_path / "data.jsonl"
    file.write_bytes(f"{row()}\n{second}\n".encode(errors="surrogateescape"))
    with pytest.raises(BadData, match=message) as caught:
        read_cases(file)
    assert str(caught.value).startswith(str(file))
    assert "jo@example.com" not in str(caught.value)


def test_cut_and_damaged_archives(tmp_path: Path) -> None:
    packed = gzip.compress("".join(row(n=i) + "\n" for i in range(500)).encode())
    file = tmp_path / "data.jsonl.gz"
    file.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(BadData, match="the gzip file is cut"):
        read_cases(file)
    file.write_bytes(packed[:40] + b"\x00" * 40 + packed[80:])
    with pytest.raises(BadData, match=r"damaged|cut|not JSON"):
        read_cases(file)


def test_absent_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="No such file"):
        read_cases(tmp_path / "absent")
    with pytest.raises(BadData, match="Is a directory"):
        read_cases(tmp_path)
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    with pytest.raises(BadData, match="no rows"):
        read_cases(empty)


def test_every_kind_of_ours_is_known_by_its_own_name() -> None:
    assert set(KIND_OF.values()) == set(PiiKind)
    assert all(KIND_OF[kind.value] is kind for kind in PiiKind)
