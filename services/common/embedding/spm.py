"""A SentencePiece unigram model, read without its library, as a `tokenizers.Tokenizer`.

The file is a protobuf `ModelProto`; only pieces, normalizer and special ids matter here, so
its wire format is read directly.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from services.common.weights.errors import CorruptModel

_PIECE, _NORMALIZER = 1, 3
_UNKNOWN_TYPE = 2
_SPACE = "▁"


@dataclass(frozen=True, slots=True)
class SpmModel:
    """What a SentencePiece file says.

    Attributes:
        pieces: Text and log-probability of each piece, by id.
        unknown_id: Piece of what no other covers.
        charsmap: Normalization rules, compiled; empty: none.
    """

    pieces: tuple[tuple[str, float], ...]
    unknown_id: int
    charsmap: bytes


def read_spm(data: bytes) -> SpmModel:
    """Reads a `.model` file.

    Raises:
        CorruptModel: It is none.
    """
    pieces: list[tuple[str, float]] = []
    unknown, charsmap = -1, b""
    try:
        for field, value in _fields(data):
            if field == _PIECE and isinstance(value, bytes):
                piece: dict[int, Any] = dict(_fields(value))
                if piece.get(3) == _UNKNOWN_TYPE:
                    unknown = len(pieces)
                score = struct.unpack("<f", piece.get(2, b"\0\0\0\0"))[0]
                pieces.append((piece[1].decode(), score))
            elif field == _NORMALIZER and isinstance(value, bytes):
                rules: dict[int, Any] = dict(_fields(value))
                charsmap = rules.get(2, b"")
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, struct.error) as error:
        raise CorruptModel("the SentencePiece file cannot be read") from error
    if unknown < 0:
        raise CorruptModel("the SentencePiece file names no unknown piece")
    return SpmModel(tuple(pieces), unknown, charsmap)


def build_tokenizer(model: SpmModel) -> Tokenizer:
    """The same pieces for the same text as SentencePiece gives."""
    tokenizer = Tokenizer(models.Unigram(list(model.pieces), model.unknown_id, False))
    steps = [normalizers.Precompiled(model.charsmap)] if model.charsmap else []
    tokenizer.normalizer = normalizers.Sequence(
        [*steps, normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, "always", split=False)
    return tokenizer


def piece_ids(tokenizer: Tokenizer, unknown_id: int, text: str) -> list[int]:
    """Ids of the pieces; each unknown character counts, where the library fuses them."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    ids: list[int] = []
    for index, piece in zip(encoding.ids, encoding.tokens, strict=True):
        ids += [index] * (len(piece) if index == unknown_id else 1)
    return ids


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Field numbers and values of one protobuf message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        if at + size > len(data):
            raise ValueError("cut short")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
