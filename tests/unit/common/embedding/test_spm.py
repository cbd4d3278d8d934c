"""The SentencePiece file is read by hand: damage is noticed, unknown pieces are counted."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.embedding.spm import build_tokenizer, piece_ids, read_spm
from services.common.weights.errors import CorruptModel


def piece(text: str, score: float, kind: int = 1) -> bytes:
    body = b"\x0a" + bytes([len(text.encode())]) + text.encode()
    body += b"\x15" + struct.pack("<f", score) + bytes([0x18, kind])
    return b"\x0a" + bytes([len(body)]) + body


MODEL = piece("<unk>", 0.0, 2) + b"".join(
    piece(text, score) for text, score in (("▁", -3), ("▁a", -1), ("b", -2), ("ab", -1.5))
)


def ids(text: str) -> list[int]:
    model = read_spm(MODEL)
    return piece_ids(build_tokenizer(model), model.unknown_id, text)


def test_the_likeliest_pieces_are_taken() -> None:
    assert ids("ab") == [2, 3]
    assert ids("  a   a ") == [2, 2]


def test_each_unknown_character_counts() -> None:
    assert ids("a罄笙") == [2, 0, 0]


@pytest.mark.parametrize("data", [MODEL[:-3], b"", b"\x00\xff", MODEL[20:], b"\x0b"])
def test_damage_is_noticed(data: bytes) -> None:
    with pytest.raises(CorruptModel):
        read_spm(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_model_or_corrupt(data: bytes) -> None:
    with contextlib.suppress(CorruptModel):
        assert read_spm(data).unknown_id >= 0
