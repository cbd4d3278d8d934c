"""Text to token ids and back, with a firm line between text and control tokens."""

from __future__ import annotations

import codecs
from pathlib import Path

from tokenizers import Tokenizer

from services.common.weights.errors import CorruptModel, ModelNotBuilt

_PRINTABLE = (range(0x21, 0x7F), range(0xA1, 0xAD), range(0xAE, 0x100))


class TextTokenizer:
    """A tokenizer whose caller text never becomes a control token.

    Safe to use from several threads.
    """

    def __init__(self, serialized: str) -> None:
        """Takes the contents of a `tokenizer.json`.

        Raises:
            CorruptModel: They cannot be understood.
        """
        self._text = _parse(serialized)
        # Without this flag the library would find "<|im_end|>" in a user's message and
        # end the turn there.
        self._text.encode_special_tokens = True
        self._template = _parse(serialized)
        self._special = {
            token.content: index
            for index, token in self._text.get_added_tokens_decoder().items()
            if token.special
        }
        self._bytes = self._token_bytes()

    @classmethod
    def load(cls, path: Path) -> TextTokenizer:
        """Reads a `tokenizer.json`.

        Raises:
            ModelNotBuilt: No such file.
            CorruptModel: It cannot be understood.
        """
        if not path.is_file():
            raise ModelNotBuilt(f"no tokenizer at {path}: run `tandem models build` first")
        return cls(path.read_text(encoding="utf-8"))

    @property
    def vocab_size(self) -> int:
        """Number of token ids, control tokens included."""
        return self._text.get_vocab_size(with_added_tokens=True)

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids of all control tokens."""
        return frozenset(self._special.values())

    def special_id(self, name: str) -> int:
        """Id of a control token, e.g. `<|im_end|>`.

        Raises:
            KeyError: The model has no such token.
        """
        return self._special[name]

    def encode_user(self, text: str) -> list[int]:
        """Ids of text from outside; what looks like a control token stays text."""
        return list(self._text.encode(text, add_special_tokens=False).ids)

    def encode_template(self, text: str) -> list[int]:
        """Ids of text of ours, in which control tokens count. Never for caller text."""
        return list(self._template.encode(text, add_special_tokens=False).ids)

    def decode_bytes(self, token: int) -> bytes:
        """Bytes of one token, perhaps part of a character; empty for control tokens.

        Raises:
            ValueError: No such token.
        """
        if not 0 <= token < len(self._bytes):
            raise ValueError(f"token {token}: the vocabulary has 0..{len(self._bytes) - 1}")
        return self._bytes[token]

    def decode(self, tokens: list[int]) -> str:
        """Text of whole tokens; broken characters become U+FFFD."""
        return b"".join(map(self.decode_bytes, tokens)).decode("utf-8", errors="replace")

    def _token_bytes(self) -> list[bytes]:
        alphabet = byte_alphabet()
        table = [b""] * self.vocab_size
        for token, index in self._text.get_vocab(with_added_tokens=True).items():
            if token not in self._special:
                table[index] = bytes(alphabet[char] for char in token)
        return table


class StreamDecoder:
    """Turns tokens into text as they come, never cutting a character."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        """Starts one stream."""
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        """Text that this token completes, perhaps empty."""
        return self._decoder.decode(self._tokenizer.decode_bytes(token))


def byte_alphabet() -> dict[str, int]:
    """The letters by which byte-level BPE writes bytes (GPT-2, Radford et al., 2019).

    Printable Latin-1 bytes stand for themselves; the others, in order, are shifted to
    U+0100 and up.
    """
    letters = {chr(byte): byte for block in _PRINTABLE for byte in block}
    hidden = [byte for byte in range(256) if chr(byte) not in letters]
    return letters | {chr(256 + index): byte for index, byte in enumerate(hidden)}


def _parse(serialized: str) -> Tokenizer:
    try:
        return Tokenizer.from_str(serialized)
    except Exception as error:  # the Rust side raises bare Exception
        raise CorruptModel(f"the tokenizer file cannot be used: {error}") from error
